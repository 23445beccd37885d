"""One module a route to the same two kernels; course.extensions.routing lists them."""
