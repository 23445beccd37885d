"""Programs that are not ours, run, and what they print, read: nvcc, profilers, disassemblers."""
