// What errors.cpp, launches.cpp, streams.cpp, graphs.cpp and api.cpp share.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>
#include "internal.h"

namespace cuda_cpu {
// ---- errors.cpp
struct Callback {  // a stream's runs while this lives
    Callback();
    ~Callback();
};
bool broken();  // a kernel has failed, and nothing runs any more
cudaError_t kernel_error();  // its code, or cudaSuccess
void asked();  // the program has asked for errors
void reset_errors();
void launch_failed(cudaError_t e, Site at, const char* kernel);
// The error of what `work` does; that of before stays the last one if there is none.
cudaError_t with_errors_apart(const std::function<void()>& work);

// ---- launches.cpp
Kernel* kernel_of(const void* f);  // that belongs to a stub's address
// CUDA programming guide, "Thread block clusters"; on Hopper a kernel may ask for twice as many
constexpr unsigned largest_portable_cluster = 8;
constexpr unsigned largest_cluster_allowed = 2 * largest_portable_cluster;
inline unsigned most_in_cluster(const Kernel& k) {
    return k.any_cluster ? largest_cluster_allowed : largest_portable_cluster;
}

// ---- graphs.cpp
struct Condition {  // what a kernel sets with cudaGraphSetConditional
    unsigned value, start;
    bool assigned;  // `start` is its value at each launch
};
struct GraphNode {
    cudaGraphNodeType type;
    std::function<cudaError_t()> run;
    std::vector<GraphNode*> after;
    Site at = {"", 0};
    std::string what;  // for the slow checks, as of an operation
    std::shared_ptr<Graph> child;
    const GraphNode* changed_from = nullptr;  // the graph's node, where a GraphExec has its own
    const GraphNode* cloned_from = nullptr;
    Graph* graph = nullptr;
};
struct Graph {
    std::vector<std::shared_ptr<GraphNode>> nodes;
    bool captured = false;
    std::vector<std::shared_ptr<Condition>> conditions;
    GraphNode* last_captured = nullptr;
    const Stream* captured_stream = nullptr;
    bool of_several_streams = false;  // then which of its nodes depend on which is not kept
};
// Nodes in an order in which each comes after those it depends on.
std::vector<std::shared_ptr<GraphNode>> in_order(const Graph* g);
// Runs nodes in this stream; those of a graph in a graph in the one that runs.
cudaError_t run_nodes(const std::vector<std::shared_ptr<GraphNode>>& nodes, Stream* s);
cudaError_t run_inside(const Graph* g);
cudaError_t add_node(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                     cudaGraphNodeType type, std::function<cudaError_t()> run);
bool captures(int device);  // is one of its streams captured?
void begin_capture(Stream* s, Graph* g);
void add_to_capture(Stream* s, cudaGraphNodeType type, std::function<cudaError_t()> f, Site at,
                    const char* what);
}  // namespace cuda_cpu
