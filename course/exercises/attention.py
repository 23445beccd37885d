"""The exercises of the chapter Attention: each part of the chapter has a module beside this one."""

from course.exercises.attention_backward import SLOPE
from course.exercises.attention_decoding import CACHED, MERGE, PAGED
from course.exercises.attention_flash import FLASH, TILES
from course.exercises.attention_online import ONLINE
from course.exercises.attention_order import DEAL
from course.exercises.attention_questions import QUIZZES as QUIZZES

EXERCISES = (ONLINE, TILES, FLASH, DEAL, SLOPE, CACHED, MERGE, PAGED)
