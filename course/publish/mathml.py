"""Formulas as MathML, which browsers draw by themselves: nothing to load, nothing to run."""

import html

import latex2mathml.converter


def mathml(latex, display=False):
    """A <math> element for a formula in LaTeX, which is also its description."""
    element = latex2mathml.converter.convert(
        html.unescape(latex.strip()), display="block" if display else "inline"
    )
    return element.replace("<math ", f'<math aria-label="{html.escape(latex.strip())}" ', 1)
