"""Recorded numbers, as the chapter shows them."""

from utils import results


def recorded(*names: str) -> None:
    """Print recorded results, or that there are none yet."""
    for name in names:
        entry = results.find(name)
        if entry is None:
            print(f"{name}: not recorded yet")
            continue
        words = in_words(name, entry["value"], entry["unit"])
        print(f"{name}: {words} ({entry['gpu']}, {entry['date'][:10]})")


def in_words(name: str, value: float, unit: str) -> str:
    """A recorded number as the chapter shows it."""
    if unit == "B":
        return f"{value / 1e9:.2f} GB"
    if unit == "FLOP/s":
        return f"{value / 1e12:,.0f} TFLOP/s"
    if unit == "ms":
        return f"{value:.4g} ms"
    if "share" in name or "saved" in name:
        return f"{value:.1%}"
    return f"{value:.3g}"
