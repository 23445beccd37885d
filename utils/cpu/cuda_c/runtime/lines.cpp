// Where in the learner's files a piece of machine code comes from, by the debug information, and
// which call of a library it works for.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include "asynchronous.h"

namespace cuda_cpu {
static std::string output_of(char* const command[]) {
    int p[2];
    if (pipe(p))
        return "";
    pid_t child = fork();
    if (child == 0) {
        dup2(p[1], 1);
        int null = open("/dev/null", 1);
        dup2(null, 2);
        close(p[0]);
        execvp(command[0], command);
        _exit(127);
    }
    close(p[1]);
    std::string out;
    char buffer[1024];
    for (ssize_t n; (n = read(p[0], buffer, sizeof buffer)) > 0;)
        out.append(buffer, size_t(n));
    close(p[0]);
    waitpid(child, nullptr, 0);
    return out;
}

static bool own_file(const std::string& f) {  // a file of ours or of the system, not the learner's
    return f.empty() || f[0] == '?' || f.find("/cuda_c/include/") != std::string::npos ||
           f.compare(0, 5, "/usr/") == 0 || f.find("/sysdeps/") != std::string::npos ||
           f.find("/cuda_c/runtime/") != std::string::npos;
}
// The place that "file:line" says; line 0 where it is none of the learner's files.
static Site site_in(const std::string& line) {
    size_t colon = line.rfind(':');
    int number = colon == std::string::npos ? 0 : atoi(line.c_str() + colon + 1);
    if (number <= 0 || own_file(line.substr(0, colon)))
        return {"", 0};
    size_t start = 0;  // "./" is the folder it was built in, see build.py
    while (line.compare(start, 2, "./") == 0)
        start += 2;
    static auto* files = new std::set<std::string>;
    return {files->insert(line.substr(start, colon - start)).first->c_str(), number};
}
struct Frame {
    std::string function, line;  // "file:line"
    Site at;
};
using Frames = std::vector<Frame>;
// Asks another program for the functions that a place in this one belongs to.
static Frames look_up(const void* code) {
    Frames frames;
    Dl_info info;
    if (!dladdr(code, &info) || !info.dli_fname)
        return frames;
    char address[40];
    const char* path = info.dli_fname;
#ifdef __APPLE__
    char base[40];
    snprintf(address, sizeof address, "%p", code);
    snprintf(base, sizeof base, "%p", info.dli_fbase);
    char* command[] = {(char*)"atos", (char*)"-i", (char*)"-fullPath",
                       (char*)"-o",   (char*)path, (char*)"-l",
                       base,          address,     nullptr};
#else
    char self[1024];
    ssize_t n = strchr(path, '/') ? 0 : readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = 0;
        path = self;
    }
    snprintf(address, sizeof address, "0x%zx", size_t(code) - size_t(info.dli_fbase));
    char* command[] = {(char*)"addr2line", (char*)"-fCi", (char*)"-e",
                       (char*)path,        address,       nullptr};
#endif
    std::istringstream out(output_of(command));
    for (std::string function, line; std::getline(out, function);) {
#ifdef __APPLE__  // "function (in program) (file:line)"
        size_t open = function.rfind('('), close = function.rfind(')');
        line = open == std::string::npos || close < open
                   ? ""
                   : function.substr(open + 1, close - open - 1);
        function.resize(std::min(function.find(" (in "), function.size()));
#else
        std::getline(out, line);
#endif
        frames.push_back({function, line, site_in(line)});
    }
    return frames;
}
// The functions that a place in the program belongs to, innermost first (through inlined ones).
static const Frames& frames_of(const void* code) {
    static auto* known = new std::map<const void*, Frames>;
    static auto* lock = new std::mutex;
    std::lock_guard<std::mutex> l(*lock);
    auto i = known->find(code);
    return i != known->end() ? i->second : (*known)[code] = look_up(code);
}
std::vector<Site>& named_sites() {  // places that have no address: see code_of
    static auto* all = new std::vector<Site>;
    return *all;
}
Site site_of(const void* code) {
    if (size_t(code) - 1 < named_sites().size())
        return named_sites()[size_t(code) - 1];
    for (const Frame& frame : frames_of(code))
        if (frame.at.line)
            return frame.at;
    return {"", 0};
}
// ---- libraries: their work is told by the call that the program made
Callers callers_of_library(const Kernel& k) {
    Callers callers;
    if (!in_kernel() && !strcmp(k.name, "library_task"))
        callers.count = backtrace(callers.frames, int(std::size(callers.frames)));
    return callers;
}
// "cublasSaxpy" of "cublasSaxpy(cublasContext*, int ..."; "thrust::sort" of
// "void thrust::sort<...".
static std::string short_name(const std::string& function) {
    std::string name = function.substr(0, function.find_first_of("<("));
    return name.substr(name.rfind(' ') + 1);
}
// A function of ours, also where a precompiled header gives it to the learner's file.
static bool own_function(const std::string& function) {
    return function.rfind("_ZN8cuda_cpu", 0) == 0 ||
           short_name(function).rfind("cuda_cpu::", 0) == 0;
}
static LibraryCall found_call(const Callers& callers) {
    std::string called;
    for (int i = 0; i < callers.count; ++i) {
        for (const Frame& frame : frames_of(static_cast<char*>(callers.frames[i]) - 1)) {
            bool ours = !frame.at.line || own_function(frame.function);
            if (!ours && !called.empty())
                return {short_name(called), frame.at};
            called = ours ? frame.function : "";
        }
    }
    return {"a library", {"", 0}};
}
const LibraryCall& library_call(const Callers& callers) {
    static auto* known = new std::map<std::vector<void*>, LibraryCall>;
    std::vector<void*> key(callers.frames, callers.frames + callers.count);
    auto i = known->find(key);
    return i != known->end() ? i->second : (*known)[key] = found_call(callers);
}
bool innermost_is_ours(const void* code) {
    for (const Frame& frame : frames_of(code))
        if (frame.line.find("/cuda_c/include/") != std::string::npos)
            return true;
    return false;
}
}  // namespace cuda_cpu
