"""The questions of the chapter Attention."""

from course.checking.quiz import Quiz, one_of

QUIZZES = (
    one_of(
        "attention.q_state",
        "What does a block of flash attention keep of each query from one tile to the next?",
        (
            "Its row of scores",
            "That row is as long as the text: storing it is what the algorithm avoids.",
        ),
        (
            "Its largest score, its sum of weights, its weighted sum of values",
            "Two numbers and a row as long as a head: the same for a text of any length.",
        ),
        (
            "Its result so far, divided by the sum of weights",
            "Dividing each time would be work for nothing, and without the largest score the next "
            "tile's weights would be relative to nothing known.",
        ),
        answer="b",
    ),
    one_of(
        "attention.q_lse",
        "The backward pass needs the weights again. Why is one number of each row enough?",
        (
            "exp(score - lse) is the weight: largest score and sum are both in it",
            "lse = m + log l, so exp(s - lse) = exp(s - m) / l. No maximum has to be found again.",
        ),
        (
            "The weights are close to 1",
            "They are anything between 0 and 1, and sum up to 1 in each row.",
        ),
        (
            "The backward pass needs only the row sums D",
            "D is one more number of each row; dV and dS need the weights themselves.",
        ),
        answer="a",
    ),
    Quiz(
        id="attention.q_gqa",
        question=(
            "A model has 64 heads of queries, 8 heads of keys and values, heads of 128 numbers, 80 "
            "layers, bf16. How many KiB does one word take in the cache?"
        ),
        answer=320,
        unit="KiB",
        explain_right="2 (keys and values) × 8 × 128 × 2 bytes are 4 KiB, and there are 80 layers.",
        explain={
            2560: "That is with 64 heads of keys; only 8 are kept, that is what GQA is for.",
            160: "Keys and values are both kept: twice that.",
            4: "That is one layer's part.",
            None: "Keys and values, of 8 heads, 128 numbers of 2 bytes each, in 80 layers.",
        },
    ),
    one_of(
        "attention.q_split",
        (
            "A GPU has 132 SMs. When does it gain least to split a sequence into parts for "
            "decoding, with 8 heads of keys?"
        ),
        ("One sequence of 100,000 words", "There 8 blocks are all the work: 124 SMs are idle."),
        (
            "64 sequences of 8,000 words each",
            "8 × 64 blocks fill the GPU already; parts only add results to be joined.",
        ),
        (
            "Two sequences, one of them very long",
            "The long one's 8 blocks would go on alone while all others have ended.",
        ),
        answer="b",
    ),
    one_of(
        "attention.q_window",
        "With a sliding window of w words, how does the work grow with the length n of a text?",
        ("As n²", "A query visits the tiles of its window only, however long the text is."),
        ("As n w", "Each of n queries sees w keys at most: a band along the diagonal."),
        ("As w²", "Each word of the text is a query once."),
        answer="b",
    ),
    one_of(
        "attention.q_deterministic",
        (
            "A backward kernel adds to dQ with atomics, from many blocks. Run twice on the same "
            "input, what may differ?"
        ),
        (
            "The last bits of dQ",
            "A sum of float32 numbers depends on its order, and atomics come in any order.",
        ),
        ("All gradients, by a lot", "Each addend arrives once: the sum is right up to rounding."),
        ("Nothing: addition has no order", "Rounded addition has one."),
        answer="a",
    ),
)
