"""greenlet's names; None where it is not to be had, as by Python in a web page."""

try:
    from greenlet import GreenletExit, getcurrent, greenlet
except ImportError:
    GreenletExit = getcurrent = greenlet = None

__all__ = ["GreenletExit", "getcurrent", "greenlet"]
