// Which nodes of a graph depend on which, asked and changed. Source: CUDA Runtime API, "Graph
// Management".
#include <map>
#include "api.h"

using namespace cuda_cpu;

namespace {
typedef std::vector<cudaGraphNode_t> Nodes;

bool edges_kept(const Graph* g) {
    if (g && !g->of_several_streams)
        return true;
    if (g)
        fprintf(stderr,
                "the CPU runtime does not keep which nodes depend on which of a graph that was "
                "captured from several streams: cudaErrorNotSupported\n");
    return false;
}
cudaError_t refused(const Graph* g) {
    return fail(g ? cudaErrorNotSupported : cudaErrorInvalidValue);
}
// As many as there is room for; without room how many there are. What is left over becomes null.
cudaError_t give(const Nodes& found, cudaGraphNode_t* out, size_t* count) {
    if (!count)
        return fail(cudaErrorInvalidValue);
    if (!out) {
        *count = found.size();
        return cudaSuccess;
    }
    for (size_t i = 0; i < *count; ++i)
        out[i] = i < found.size() ? found[i] : nullptr;
    *count = std::min(*count, found.size());
    return cudaSuccess;
}
void plain_edges(cudaGraphEdgeData* edges, size_t count) {
    if (edges)
        std::fill(edges, edges + count, cudaGraphEdgeData{});
}
void edges_of(const Graph* g, Nodes& from, Nodes& to) {
    for (auto& node : g->nodes)
        for (GraphNode* before : node->after) {
            from.push_back(before);
            to.push_back(node.get());
        }
}
const char* name_of(cudaGraphNodeType type) {
    switch (type) {
        case cudaGraphNodeTypeKernel:
            return "kernel";
        case cudaGraphNodeTypeMemcpy:
            return "memcpy";
        case cudaGraphNodeTypeMemset:
            return "memset";
        case cudaGraphNodeTypeHost:
            return "host";
        case cudaGraphNodeTypeGraph:
            return "graph";
        case cudaGraphNodeTypeEmpty:
            return "empty";
        case cudaGraphNodeTypeMemAlloc:
            return "allocation";
        case cudaGraphNodeTypeMemFree:
            return "free";
        default:
            return "condition";
    }
}
}  // namespace

cudaError_t cudaGraphGetRootNodes(cudaGraph_t g, cudaGraphNode_t* out, size_t* count) {
    if (!edges_kept(g))
        return refused(g);
    Nodes roots;
    for (auto& node : g->nodes)
        if (node->after.empty())
            roots.push_back(node.get());
    return give(roots, out, count);
}
cudaError_t cudaGraphGetEdges(cudaGraph_t g, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edges, size_t* count) {
    if (!edges_kept(g) || !from != !to)
        return refused(from && to ? g : nullptr);
    Nodes all_from, all_to;
    edges_of(g, all_from, all_to);
    size_t room = count ? *count : 0;
    cudaError_t e = give(all_from, from, count);
    if (e || !to)
        return e;
    plain_edges(edges, *count);
    return give(all_to, to, &room);
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* out,
                                         cudaGraphEdgeData* edges, size_t* count) {
    if (!node || !edges_kept(node->graph))
        return refused(node ? node->graph : nullptr);
    cudaError_t e = give(node->after, out, count);
    if (!e && out)
        plain_edges(edges, *count);
    return e;
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* out,
                                           cudaGraphEdgeData* edges, size_t* count) {
    if (!node || !edges_kept(node->graph))
        return refused(node ? node->graph : nullptr);
    Nodes from, to, dependent;
    edges_of(node->graph, from, to);
    for (size_t i = 0; i < from.size(); ++i)
        if (from[i] == node)
            dependent.push_back(to[i]);
    cudaError_t e = give(dependent, out, count);
    if (!e && out)
        plain_edges(edges, *count);
    return e;
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t g, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                        size_t n) {
    if (!edges_kept(g))
        return refused(g);
    for (size_t i = 0; i < n; ++i) {
        auto& after = to[i]->after;
        auto found = std::find(after.begin(), after.end(), from[i]);
        if (found == after.end())
            return fail(cudaErrorInvalidValue);
        after.erase(found);
    }
    return cudaSuccess;
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
    Graph* g = node ? node->graph : nullptr;
    if (!edges_kept(g))
        return refused(g);
    for (auto& other : g->nodes) {
        auto& after = other->after;
        after.erase(std::remove(after.begin(), after.end(), node), after.end());
    }
    auto here = [node](auto& other) { return other.get() == node; };
    g->nodes.erase(std::remove_if(g->nodes.begin(), g->nodes.end(), here), g->nodes.end());
    return cudaSuccess;
}

cudaError_t cudaGraphClone(cudaGraph_t* to, cudaGraph_t from) {
    if (!to || !from)
        return fail(cudaErrorInvalidValue);
    auto clone = new Graph(*from);
    std::map<const GraphNode*, GraphNode*> now;
    for (auto& node : clone->nodes) {
        const GraphNode* original = node.get();
        node = std::make_shared<GraphNode>(*original);
        node->cloned_from = original;
        node->graph = clone;
        now[original] = node.get();
    }
    for (auto& node : clone->nodes)
        for (GraphNode*& before : node->after)
            before = now[before];
    clone->last_captured = nullptr;
    *to = clone;
    return cudaSuccess;
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* out, cudaGraphNode_t original,
                                     cudaGraph_t clone) {
    if (!out || !original || !clone)
        return fail(cudaErrorInvalidValue);
    for (auto& node : clone->nodes)
        if (node->cloned_from == original) {
            *out = node.get();
            return cudaSuccess;
        }
    return fail(cudaErrorInvalidValue);
}

// For Graphviz: what each node is, and the edges.
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t g, const char* path, unsigned) {
    if (!edges_kept(g))
        return refused(g);
    FILE* file = path ? fopen(path, "w") : nullptr;
    if (!file)
        return fail(cudaErrorOperatingSystem);
    fprintf(file, "digraph dot {\n");
    std::map<const GraphNode*, size_t> number;
    for (auto& node : g->nodes) {
        number[node.get()] = number.size();
        fprintf(file, "    node_%zu [label=\"%s\"];\n", number[node.get()],
                node->what.empty() ? name_of(node->type) : node->what.c_str());
    }
    Nodes from, to;
    edges_of(g, from, to);
    for (size_t i = 0; i < from.size(); ++i)
        fprintf(file, "    node_%zu -> node_%zu;\n", number[from[i]], number[to[i]]);
    fprintf(file, "}\n");
    fclose(file);
    return cudaSuccess;
}
