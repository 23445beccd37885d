"""Made-up results files, for tests of what reads them."""

from utils import results

DATE = "2026-01-31T12:00:00Z"
GPU = {
    "name": "Example GPU 9000",
    "compute_capability": "9.0",
    "sms": 132,
    "memory_bytes": 80 << 30,
    "driver": "600.1",
    "cuda": "13.0",
}


def entry(name, value, gpu=GPU["name"], date=DATE, unit="1"):
    """One result of a GPU."""
    fields = {"name": name, "value": value, "unit": unit, "spread": 0.0}
    of = {"gpu": gpu, "driver": GPU["driver"], "versions": {"numba": "0.68.1"}, "date": date}
    return fields | of


def write(folder, gpu, values, capability="9.0", dates=None):
    """The results file of one GPU. values: {name: value}; dates: {name: date}, where not DATE."""
    facts = {**GPU, "name": gpu, "compute_capability": capability}
    dates = dates or {}
    entries = [entry(key, value, gpu, dates.get(key, DATE)) for key, value in values.items()]
    return results.write(facts, entries, folder / f"{results.slug(gpu)}.json")
