"""A Llama-shaped language model, one token at a time: kernels, their proof and their race.

problem: sizes, weights, the cache; reference: the same in plain PyTorch. plain: a token as nine
kernels; megakernel: as one, with weights of 16, 8 or 4 bits (quantized); expected: what it should
take. rightness: decoders held to float64; pytorch_modes, bench: raced against PyTorch. by_hand: a
layer's parts in NumPy, to be read.
"""
