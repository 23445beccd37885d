// Graph nodes that hold graphs, memory or a condition. Source: CUDA C++ Programming Guide, "CUDA
// Graphs".
#include "api.h"

using namespace cuda_cpu;

// ---- graphs in graphs: a copy is taken when the node is added
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* out, cudaGraph_t g,
                                       const cudaGraphNode_t* after, size_t n, cudaGraph_t child) {
    if (!out || !g || !child)
        return fail(cudaErrorInvalidValue);
    auto own = std::make_shared<Graph>(*child);
    for (auto& condition : child->conditions)
        g->conditions.push_back(condition);
    auto run = [own] { return run_inside(own.get()); };
    cudaError_t e = add_node(out, g, after, n, cudaGraphNodeTypeGraph, run);
    (*out)->child = own;
    return e;
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* g) {
    if (!node || !g || !node->child)
        return fail(cudaErrorInvalidValue);
    *g = node->child.get();
    return cudaSuccess;
}

// ---- memory: its address is known when the node is added. It is given back with the last graph
// that knows it, unless the program frees it before.
namespace {
struct NodeMemory {
    void* p = nullptr;
    size_t bytes = 0;
    bool freed_by_node = false;
    ~NodeMemory() {
        if (freed_by_node)
            release(p, {"", 0});
    }
};
}  // namespace
static std::vector<std::weak_ptr<NodeMemory>> node_memories;

static std::shared_ptr<NodeMemory> memory_for_node(size_t bytes, Site at, cudaError_t* e) {
    auto memory = std::make_shared<NodeMemory>();
    memory->bytes = bytes;
    *e = allocate(&memory->p, bytes, cudaMemoryTypeDevice, at);
    node_memories.push_back(memory);
    return memory;
}
static std::shared_ptr<NodeMemory> node_memory_at(const void* p) {
    for (auto& known : node_memories)
        if (std::shared_ptr<NodeMemory> memory = known.lock())
            if (memory->p == p)
                return memory;
    return nullptr;
}
// What a free node does: what is read after it is no number.
static std::function<cudaError_t()> given_back(const std::shared_ptr<NodeMemory>& memory) {
    memory->freed_by_node = true;
    if (Allocation* a = find_allocation(memory->p))
        a->of_graph = true;
    return [memory] { return fill(memory->p, 0xff, memory->bytes, nullptr, true, {"", 0}); };
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* out, cudaGraph_t g,
                                     const cudaGraphNode_t* after, size_t n,
                                     cudaMemAllocNodeParams* p) {
    if (!out || !g || !p || !p->bytesize)
        return fail(cudaErrorInvalidValue);
    cudaError_t e;
    auto memory = memory_for_node(p->bytesize, {"", 0}, &e);
    if (e)
        return e;
    p->dptr = memory->p;
    return add_node(out, g, after, n, cudaGraphNodeTypeMemAlloc, [memory] { return cudaSuccess; });
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* out, cudaGraph_t g,
                                    const cudaGraphNode_t* after, size_t n, void* p) {
    std::shared_ptr<NodeMemory> memory = node_memory_at(p);
    if (!memory)
        return fail(cudaErrorInvalidValue);
    return add_node(out, g, after, n, cudaGraphNodeTypeMemFree, given_back(memory));
}
// In a stream that is captured, memory comes and goes with the graph, as with its nodes.
namespace cuda_cpu {
static void check_in_stream(const void* p, Stream* s, Site at, const char* what) {
    Turn turn;
    begin_operation(s, at, what);
    check_ownership(p, at);
}
cudaError_t allocate_in_stream(void** p, size_t bytes, cudaStream_t handle, Site at) {
    Stream* s = live_stream(handle);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (!s->capture) {
        cudaError_t done = allocate(p, bytes, cudaMemoryTypeDevice, at);
        if (checking && !done && *p)
            check_in_stream(*p, s, at, "cudaMallocAsync");
        return done;
    }
    cudaError_t e;
    auto memory = memory_for_node(bytes, at, &e);
    *p = memory->p;
    if (!e)
        add_to_capture(
            s, cudaGraphNodeTypeMemAlloc, [memory] { return cudaSuccess; }, at, "cudaMallocAsync");
    return e;
}
cudaError_t release_in_stream(void* p, cudaStream_t handle, Site at) {
    Stream* s = live_stream(handle);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (!s->capture) {
        if (cudaError_t broken = sticky_error())
            return broken;
        if (checking)
            check_in_stream(p, s, at, "cudaFreeAsync");
        return p ? give_back(p, at) : cudaSuccess;
    }
    std::shared_ptr<NodeMemory> memory = node_memory_at(p);
    if (!memory)  // of before the capture: a graph cannot give it back
        return fail(cudaErrorInvalidValue);
    add_to_capture(s, cudaGraphNodeTypeMemFree, given_back(memory), at, "cudaFreeAsync");
    return cudaSuccess;
}
}  // namespace cuda_cpu
cudaError_t cudaDeviceGraphMemTrim(int) {
    return cudaSuccess;
}

// ---- conditions
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* out, cudaGraph_t g,
                                             unsigned start, unsigned flags) {
    if (!out || !g)
        return fail(cudaErrorInvalidValue);
    bool assigned = flags & cudaGraphCondAssignDefault;
    g->conditions.push_back(std::make_shared<Condition>(Condition{start, start, assigned}));
    *out = reinterpret_cast<cudaGraphConditionalHandle>(g->conditions.back().get());
    return cudaSuccess;
}
void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) {
    reinterpret_cast<Condition*>(handle)->value = value;
}
static cudaError_t run_conditional(const Condition* c, cudaGraphConditionalNodeType type,
                                   const std::vector<std::shared_ptr<Graph>>& bodies) {
    auto run = [&](size_t which) {
        return which < bodies.size() ? run_inside(bodies[which].get()) : cudaSuccess;
    };
    if (type == cudaGraphCondTypeSwitch)
        return run(c->value);
    if (type == cudaGraphCondTypeIf)
        return run(c->value ? 0 : 1);
    while (c->value && !sticky_error())
        if (cudaError_t e = run(0))
            return e;
    return cudaSuccess;
}
static cudaError_t add_conditional(cudaGraphNode_t* out, cudaGraph_t g,
                                   const cudaGraphNode_t* after, size_t n,
                                   cudaConditionalNodeParams& p) {
    bool is_while = p.type == cudaGraphCondTypeWhile;
    bool is_if = p.type == cudaGraphCondTypeIf;
    if (!p.handle || !p.size || (is_while && p.size > 1) || (is_if && p.size > 2))
        return fail(cudaErrorInvalidValue);
    std::vector<std::shared_ptr<Graph>> bodies;
    auto graphs = std::make_shared<std::vector<cudaGraph_t>>();
    for (unsigned i = 0; i < p.size; ++i) {
        bodies.push_back(std::make_shared<Graph>());
        graphs->push_back(bodies.back().get());
    }
    p.phGraph_out = graphs->data();
    const Condition* condition = reinterpret_cast<const Condition*>(p.handle);
    cudaGraphConditionalNodeType type = p.type;
    auto run = [condition, type, bodies, graphs] {
        return run_conditional(condition, type, bodies);
    };
    return add_node(out, g, after, n, cudaGraphNodeTypeConditional, run);
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData*, size_t n, cudaGraphNodeParams* p) {
    if (!out || !g || !p)
        return fail(cudaErrorInvalidValue);
    switch (p->type) {
        case cudaGraphNodeTypeKernel: {
            auto& k = p->kernel;
            cudaKernelNodeParams params = {k.func,           k.gridDim,      k.blockDim,
                                           k.sharedMemBytes, k.kernelParams, k.extra};
            return cudaGraphAddKernelNode(out, g, after, n, &params);
        }
        case cudaGraphNodeTypeMemset:
            return cudaGraphAddMemsetNode(out, g, after, n, &p->memset);
        case cudaGraphNodeTypeHost:
            return cudaGraphAddHostNode(out, g, after, n, &p->host);
        case cudaGraphNodeTypeGraph:
            return cudaGraphAddChildGraphNode(out, g, after, n, p->graph.graph);
        case cudaGraphNodeTypeEmpty:
            return cudaGraphAddEmptyNode(out, g, after, n);
        case cudaGraphNodeTypeMemAlloc:
            return cudaGraphAddMemAllocNode(out, g, after, n, &p->alloc);
        case cudaGraphNodeTypeMemFree:
            return cudaGraphAddMemFreeNode(out, g, after, n, p->free.dptr);
        case cudaGraphNodeTypeConditional:
            return add_conditional(out, g, after, n, p->conditional);
        default:
            return fail(cudaErrorNotSupported);
    }
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t g, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                     size_t n) {
    return cudaGraphAddDependencies(g, from, to, n);
}
cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t handle, cudaGraph_t g,
                                          const cudaGraphNode_t*, const cudaGraphEdgeData*, size_t,
                                          cudaStreamCaptureMode) {
    Stream* s = live_stream(handle);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (!g || s->is_default)
        return fail(cudaErrorInvalidValue);
    if (s->capture)
        return fail(cudaErrorIllegalState);
    s->origin = true;
    begin_capture(s, g);
    return cudaSuccess;
}
