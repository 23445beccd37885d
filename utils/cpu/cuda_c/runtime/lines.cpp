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
// The lines that a place in the program belongs to, "file:line", innermost first (through inlined
// functions). With `names` a line with the function's name stands before each.
static std::vector<std::string> lines_of(const void* code, bool names = false) {
    std::vector<std::string> lines;
    Dl_info info;
    if (!dladdr(code, &info) || !info.dli_fname)
        return lines;
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
    char* command[] = {(char*)"addr2line",
                       (char*)(names ? "-fCi" : "-i"),
                       (char*)"-e",
                       (char*)path,
                       address,
                       nullptr};
#endif
    std::string out = output_of(command);
    for (size_t start = 0; start < out.size();) {
        size_t end = std::min(out.find('\n', start), out.size());
        std::string line = out.substr(start, end - start);
#ifdef __APPLE__  // "function (in program) (file:line)"
        if (names)
            lines.push_back(line.substr(0, line.find(" (in ")));
        size_t open = line.rfind('('), close = line.rfind(')');
        line = open == std::string::npos || close < open ? ""
                                                         : line.substr(open + 1, close - open - 1);
#endif
        lines.push_back(line);
        start = end + 1;
    }
    return lines;
}
std::vector<Site>& named_sites() {  // places that have no address: see code_of
    static auto* all = new std::vector<Site>;
    return *all;
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
Site site_of(const void* code) {
    if (size_t(code) - 1 < named_sites().size())
        return named_sites()[size_t(code) - 1];
    for (const std::string& line : lines_of(code))
        if (Site at = site_in(line); at.line)
            return at;
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
        std::vector<std::string> lines = lines_of(static_cast<char*>(callers.frames[i]) - 1, true);
        for (size_t n = 0; n + 1 < lines.size(); n += 2) {
            Site at = site_in(lines[n + 1]);
            bool ours = !at.line || own_function(lines[n]);
            if (!ours && !called.empty())
                return {short_name(called), at};
            called = ours ? lines[n] : "";
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
    for (const std::string& line : lines_of(code))
        if (line.find("/cuda_c/include/") != std::string::npos)
            return true;
    return false;
}
}  // namespace cuda_cpu
