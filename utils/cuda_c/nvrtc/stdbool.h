// C++ has bool, true and false without it.
