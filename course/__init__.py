"""The course as a whole: its list of chapters, exercises with their checkers, and the learner's
progress.
"""

import utils  # noqa: F401  decides between GPU and CPU engines before anything here imports Numba
from utils.files import ROOT
from utils.tools import yours

yours.look_in(ROOT / "course" / "kernels", ROOT / "course")
