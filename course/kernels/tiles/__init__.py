"""The chapter's Triton kernels that are whole files, their rivals in other languages, and the bench
that checks and times them all.
"""

import utils  # noqa: F401  decides between GPU and CPU before Triton is imported
