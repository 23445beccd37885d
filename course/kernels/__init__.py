"""Kernels that are whole files, one folder a chapter, with what launches, proves and races them.
Chapters show pieces of them.
"""
