"""How numbers with a unit are written."""


def format_ms(value: float | None) -> str:
    """Milliseconds with three significant digits, in the unit that reads best."""
    if value is None:
        return "?"
    if abs(value) >= 1000:
        return f"{value / 1000:.3g} s"
    if abs(value) >= 0.01:
        return f"{value:.3g} ms"
    return f"{value * 1000:.3g} µs"
