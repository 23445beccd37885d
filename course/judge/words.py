"""The keys of all reasons: the question that each answers, and the sentence that is read first.

What a run adds (which call, which line, how far off) follows the sentence.
"""

RIGHT, FAST, HONEST = "right", "fast", "honest"

#: key -> (question, sentence)
REASONS = {
    # ---- right
    "wrong_value": (RIGHT, "Values are wrong."),
    "only_sizes": (RIGHT, "It is right for the sizes that a task names, and wrong for others."),
    "only_values": (RIGHT, "It is right for ordinary values only."),
    "imprecise": (RIGHT, "The error is larger than the operation's roundings explain."),
    "wrong_shape": (RIGHT, "The result has another shape."),
    "wrong_dtype": (RIGHT, "The result has another type."),
    "no_result": (RIGHT, "It returns nothing that can be compared."),
    "unwritten": (RIGHT, "Elements of the output were never written."),
    "mutates_input": (RIGHT, "It changes what it should only read."),
    "aliases": (
        RIGHT,
        "Its result shares memory with what it was given, or with an earlier result.",
    ),
    "stale": (RIGHT, "A call returned the answer for other values, which it had seen before."),
    "not_repeatable": (RIGHT, "The same values give another result at another time."),
    "strided": (RIGHT, "It is right only for arrays that lie in memory in one way."),
    "same_array": (RIGHT, "It is wrong where two arguments are one and the same array."),
    "leaks": (RIGHT, "Each call takes memory of the device, and does not give it back."),
    "property": (RIGHT, "A law does not hold that every right answer obeys."),
    "race": (RIGHT, "Two threads use the same memory in no order, and one of them writes: a race."),
    "does_not_wait": (RIGHT, "It does not wait for work that its arguments come from."),
    "uninitialized": (RIGHT, "It uses memory that nobody has written."),
    "out_of_bounds": (RIGHT, "It reaches past the end of an array or a list."),
    "crashed": (RIGHT, "It stopped with an error."),
    "does_not_load": (RIGHT, "It cannot be loaded."),
    "timeout": (RIGHT, "It did not finish in time."),
    "not_run": (RIGHT, "The engine for machines without a GPU lacks something that it uses."),
    # ---- fast
    "no_gpu": (FAST, "There is no GPU here, so nothing is timed."),
    "wrong": (FAST, "Only what is right is timed."),
    "no_rival": (FAST, "It was raced with nobody, so its time alone says nothing."),
    "unsteady": (FAST, "Its times vary too much: something else uses this GPU."),
    "slower": (FAST, "It is slower than its rival."),
    "not_timed": (FAST, "It fails when it is timed."),
    "too_fast": (FAST, "Its time is shorter than this GPU can move the bytes or do the work."),
    "holds_cache": (
        FAST,
        "It has the GPU keep its data in the cache, which no flush reaches then.",
    ),
    "left_running": (FAST, "Work goes on after the call has returned, where no clock sees it."),
    "clock_differs": (FAST, "Its own process tells another time than the judge's clock."),
    # ---- honest
    "kept_answer": (
        HONEST,
        "It keeps answers and returns them when it sees the same values again.",
    ),
    "library": (HONEST, "A library computes the result that the candidate claims to compute."),
    "falls_back": (HONEST, "Its own kernel fails or is left out, and something else computes."),
    "patched": (
        HONEST,
        "It changes what is not its own: a clock, a check, a library or a setting of its process.",
    ),
    "looks_around": (HONEST, "It looks for the judge: at frames, objects, modules or memory."),
    "raw_memory": (HONEST, "It reaches memory past Python, where nothing can be watched."),
    "hides_code": (HONEST, "It runs text as code, so that nobody can read what runs."),
    "starts_processes": (HONEST, "It starts other programs."),
    "network": (HONEST, "It opens a connection, or asks about the network."),
    "reads_files": (HONEST, "It reads files that are none of its own."),
    "leaves_files": (HONEST, "It leaves files or environment variables behind."),
    "threads": (HONEST, "It leaves threads running, or asks for them."),
    "exit_hook": (HONEST, "It asks to be run once more when the process ends."),
    "not_plain": (
        HONEST,
        "What it returns is no plain array: it could compute when it is looked at.",
    ),
    "constant": (HONEST, "Its result does not depend on the input."),
    "narrower": (HONEST, "It computes in a narrower type than is declared."),
    "sleeps": (
        HONEST,
        "It sleeps, which no computation needs: a clock that learns from it is fooled.",
    ),
    "counts_calls": (HONEST, "Something that it keeps changes at each call, so it can count them."),
    "waits": (HONEST, "It counts its calls, and does something else in later ones."),
    "reads_clock": (HONEST, "It reads a clock or draws random numbers."),
    "otherwise_alone": (HONEST, "It gives another result where it is not watched."),
    "knows_the_test": (HONEST, "It asks whether it is being tested, and does something else then."),
    "forged": (HONEST, "It speaks to the judge in the harness's place."),
}


#: Keys of what is told, and is no reason to refuse anything: an honest candidate may do so, too
FACTS = ("counts_calls", "reads_clock")


def question_of(key: str) -> str:
    """The question that a reason answers: "right", "fast" or "honest"."""
    return REASONS[key][0]


def sentence(key: str) -> str:
    """The sentence of a reason."""
    return REASONS[key][1]
