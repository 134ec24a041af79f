from softcount.senses.estimators import Sense as Sense
from softcount.senses.estimators import SenseInducer as SenseInducer
