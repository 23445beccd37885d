"""Recorded numbers, as the chapter shows them."""

from utils import results


def recorded(*names: str | tuple[str, str]) -> None:
    """Print recorded results, or that there are none yet. names: or (name, words for it)."""
    for name, label in map(labelled, names):
        entry = results.find(name)
        if entry is None:
            print(f"{label}: not recorded yet")
            continue
        words = in_words(name, entry["value"], entry["unit"])
        print(f"{label}: {words} ({entry['gpu']}, {entry['date'][:10]})")


def labelled(name: str | tuple[str, str]) -> tuple[str, str]:
    """(name, words for it): the name itself, where no words are given."""
    return (name, name) if isinstance(name, str) else name


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
