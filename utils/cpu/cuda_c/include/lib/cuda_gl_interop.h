#error "OpenGL is not offered on the CPU (cuda_gl_interop.h): this program needs a GPU"
