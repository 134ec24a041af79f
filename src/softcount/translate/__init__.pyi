from softcount.translate.estimators import Translator as Translator
from softcount.translate.language_model import LanguageModel as LanguageModel
from softcount.translate.search import (
    Translation as Translation,
)
from softcount.translate.search import (
    TranslationExplanation as TranslationExplanation,
)
