from softcount.grammar.estimators import PCFG as PCFG
from softcount.grammar.report import grammar_report as grammar_report
