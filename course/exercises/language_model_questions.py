"""The questions of the chapter A language model."""

from course.checking.quiz import one_of

QUIZZES = (
    one_of(
        "language_model.q_bytes",
        "A model of 8 billion weights answers one person. What comes nearest to making "
        "its tokens twice as fast?",
        (
            "A GPU with twice the tensor cores",
            "One row uses each weight for two operations: tensor cores wait for memory already.",
        ),
        (
            "Weights of half the bits",
            "Nearly all of a token's bytes are weights. Not quite twice as fast: the row's way "
            "from part to part stays, and in a small model it weighs more.",
        ),
        (
            "Two people at once",
            "They share the weights' bytes, so the GPU does twice as much. But each one's tokens "
            "come as fast as before.",
        ),
        answer="b",
    ),
    one_of(
        "language_model.q_prefill",
        "A prompt of 2,000 tokens goes through the model at once. Why not a token at a time?",
        (
            "The result would be another one",
            "It would be the same: with a causal mask no token sees a later one.",
        ),
        (
            "It would need more memory",
            "It would need less: one row of everything, and the same cache.",
        ),
        (
            "All weights would be read 2,000 times",
            "At once they are read for all rows together, and the tensor cores set the pace.",
        ),
        answer="c",
    ),
    one_of(
        "language_model.q_temperature",
        "All logits are divided by 2 before the softmax. What changes?",
        (
            "Nothing: a softmax divides by the sum",
            "It divides by a sum of powers. Half of an exponent is a root, not half.",
        ),
        (
            "The probabilities move together, and their order stays",
            "Each becomes its square root, over the sum of the roots. Likely tokens lose, unlikely "
            "ones win, and none overtakes another.",
        ),
        (
            "The likeliest token becomes likelier",
            "That is what dividing by less than 1 does.",
        ),
        answer="b",
    ),
    one_of(
        "language_model.q_speculative",
        "A draft that guesses badly is used for speculative decoding. What happens to the text?",
        (
            "It becomes worse, as the draft is",
            "Rejected guesses are replaced so that the large model's distribution comes out, "
            "whatever the draft is.",
        ),
        (
            "It stays as good, and comes more slowly",
            "Hardly a guess passes, so each step of the large model gives little more than one "
            "token, and the draft's steps come on top.",
        ),
        (
            "It stays as good, and comes as fast",
            "The draft's own steps cost time, and their guesses are thrown away.",
        ),
        answer="b",
    ),
    one_of(
        "language_model.q_batch",
        "A server doubles its batch from 8 to 16 sequences, each at position 1,000 of the model "
        "with 1.24 billion weights. What happens to the bytes of a step?",
        (
            "They double",
            "Only the caches do. The weights, 2.5 GB, are read once for all.",
        ),
        (
            "They grow by about a tenth",
            "8 caches more of 33 MB each, on top of 2.5 GB of weights and 8 caches.",
        ),
        (
            "They stay the same",
            "The weights' do. But each sequence has a cache of its own, and it is read in each "
            "step.",
        ),
        answer="b",
    ),
)
