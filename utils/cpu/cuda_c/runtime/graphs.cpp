// Graphs: streams that are captured, nodes that are added, and running them.
#include <algorithm>
#include "api.h"

namespace cuda_cpu {
struct GraphExec {
    std::vector<std::shared_ptr<GraphNode>> nodes;
    std::vector<std::shared_ptr<Condition>> conditions;
};
static std::vector<Stream*> capturing;
static std::mutex capturing_lock;
// A call that waits for a device is not allowed while one of its streams is captured.
bool captures(int device) {
    std::lock_guard<std::mutex> l(capturing_lock);
    return std::any_of(capturing.begin(), capturing.end(),
                       [device](Stream* s) { return s->device == device; });
}
void begin_capture(Stream* s, Graph* g) {
    std::lock_guard<std::mutex> l(capturing_lock);
    s->capture = g;
    capturing.push_back(s);
}

void add_to_capture(Stream* s, cudaGraphNodeType type, std::function<cudaError_t()> f, Site at,
                    const char* what) {
    auto node = std::make_shared<GraphNode>();
    node->type = type;
    node->run = std::move(f);
    node->at = at;
    node->what = what;
    Graph& graph = *s->capture;
    node->graph = &graph;
    if (graph.last_captured)
        node->after = {graph.last_captured};
    graph.of_several_streams |= graph.captured_stream && graph.captured_stream != s;
    graph.captured_stream = s;
    graph.last_captured = node.get();
    graph.nodes.push_back(node);
}
}  // namespace cuda_cpu

using namespace cuda_cpu;

cudaError_t cudaStreamBeginCapture(cudaStream_t h, cudaStreamCaptureMode) {
    Stream* s = live_stream(h);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (s->is_default)
        return fail(cudaErrorStreamCaptureUnsupported);
    if (s->capture)
        return fail(cudaErrorIllegalState);
    Graph* g = new Graph();
    g->captured = true;
    s->origin = true;
    begin_capture(s, g);
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t h, cudaGraph_t* g) {
    Stream* s = stream_of(h);
    if (!s->capture || !s->origin)
        return fail(cudaErrorIllegalState);
    *g = s->capture;
    s->origin = false;
    std::lock_guard<std::mutex> l(capturing_lock);
    for (Stream*& other : capturing)
        if (other->capture == *g) {
            other->capture = nullptr;
            other = nullptr;
        }
    capturing.erase(std::remove(capturing.begin(), capturing.end(), nullptr), capturing.end());
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* status) {
    *status = stream_of(s)->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) {
    return cudaSuccess;
}
cudaError_t cudaGraphCreate(cudaGraph_t* g, unsigned) {
    *g = new Graph();
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
    if (!g)
        return fail(cudaErrorInvalidValue);
    delete g;
    return cudaSuccess;
}
namespace cuda_cpu {
std::vector<std::shared_ptr<GraphNode>> in_order(const Graph* g) {
    std::vector<std::shared_ptr<GraphNode>> out, left = g->nodes;
    while (!left.empty()) {
        size_t before = left.size();
        for (size_t i = 0; i < left.size();) {
            bool ready =
                std::all_of(left[i]->after.begin(), left[i]->after.end(), [&](GraphNode* n) {
                    return std::none_of(left.begin(), left.end(),
                                        [&](auto& l) { return l.get() == n; });
                });
            if (ready) {
                out.push_back(left[i]);
                left.erase(left.begin() + long(i));
            } else {
                ++i;
            }
        }
        if (left.size() == before)
            break;  // a cycle
    }
    return out;
}
static std::vector<std::shared_ptr<GraphNode>> copies_in_order(const Graph* g) {
    auto nodes = in_order(g);
    for (auto& node : nodes) {
        const GraphNode* original = node.get();
        node = std::make_shared<GraphNode>(*original);
        node->changed_from = original;
    }
    return nodes;
}
static thread_local Stream* running_in = nullptr;
cudaError_t run_nodes(const std::vector<std::shared_ptr<GraphNode>>& nodes, Stream* s) {
    running_in = s;
    for (auto& n : nodes) {
        if (!n->run || broken())
            continue;
        begin_operation(s, n->at, n->what.c_str());
        if (cudaError_t k = n->run())
            return k;
    }
    return cudaSuccess;
}
cudaError_t run_inside(const Graph* g) {
    return run_nodes(in_order(g), running_in);
}
}  // namespace cuda_cpu
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long) {
    if (!e || !g)
        return fail(cudaErrorInvalidValue);
    *e = new GraphExec{copies_in_order(g), g->conditions};
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, cudaGraphNode_t* bad, char* log,
                                 size_t size) {
    if (bad)
        *bad = nullptr;
    if (log && size)
        *log = 0;
    return cudaGraphInstantiate(e, g, 0);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* e, cudaGraph_t g,
                                          unsigned long long flags) {
    return cudaGraphInstantiate(e, g, flags);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s) {
    if (!e)
        return fail(cudaErrorInvalidValue);
    if (cudaError_t k = sticky_error())
        return k;
    auto nodes = e->nodes;
    auto conditions = e->conditions;
    return in_stream(s, cudaGraphNodeTypeGraph, true, [nodes, conditions, s] {
        for (auto& condition : conditions)
            if (condition->assigned)
                condition->value = condition->start;
        return run_nodes(nodes, stream_of(s));
    });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
    return sticky_error();
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
    delete e;
    return cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t e, cudaGraph_t g,
                                cudaGraphExecUpdateResultInfo* info) {
    if (info)
        *info = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
    if (e->nodes.size() != g->nodes.size()) {
        if (info)
            info->result = cudaGraphExecUpdateError;
        return fail(cudaErrorGraphExecUpdateFailure);
    }
    e->nodes = copies_in_order(g);
    e->conditions = g->conditions;
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t* nodes, size_t* count) {
    if (nodes)
        for (size_t i = 0; i < *count && i < g->nodes.size(); ++i)
            nodes[i] = g->nodes[i].get();
    *count = g->nodes.size();
    return cudaSuccess;
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t n, cudaGraphNodeType* t) {
    *t = n->type;
    return cudaSuccess;
}

namespace cuda_cpu {
cudaError_t add_node(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                     cudaGraphNodeType type, std::function<cudaError_t()> run) {
    auto node = std::make_shared<GraphNode>();
    node->type = type;
    node->run = std::move(run);
    node->graph = g;
    if (n)
        node->after.assign(after, after + n);
    g->nodes.push_back(node);
    *out = node.get();
    return cudaSuccess;
}
}  // namespace cuda_cpu
// The arguments' values are taken now: the stub is called as in a capture and its work is kept.
static cudaError_t take_kernel(const cudaKernelNodeParams* p, std::function<cudaError_t()>& run) {
    Stream capture;
    Graph taken;
    capture.capture = &taken;
    cudaError_t e = launch_kernel_by_address(p->func, p->gridDim, p->blockDim, p->kernelParams,
                                             p->sharedMemBytes, &capture, false, {"", 0});
    if (!e)
        run = taken.nodes.at(0)->run;
    return e;
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* out, cudaGraph_t g,
                                   const cudaGraphNode_t* after, size_t n,
                                   const cudaKernelNodeParams* p) {
    std::function<cudaError_t()> run;
    if (cudaError_t e = take_kernel(p, run))
        return e;
    return add_node(out, g, after, n, cudaGraphNodeTypeKernel, run);
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* p) {
    auto same = [node](auto& own) { return own.get() == node || own->changed_from == node; };
    auto own = std::find_if(e->nodes.begin(), e->nodes.end(), same);
    if (own == e->nodes.end() || node->type != cudaGraphNodeTypeKernel)
        return fail(cudaErrorInvalidValue);
    auto changed = std::make_shared<GraphNode>(**own);
    changed->changed_from = node;
    if (cudaError_t wrong = take_kernel(p, changed->run))
        return wrong;
    *own = changed;
    return cudaSuccess;
}
// An executable graph of before keeps the old node.
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* p) {
    if (!node || node->type != cudaGraphNodeTypeKernel)
        return fail(cudaErrorInvalidValue);
    return take_kernel(p, node->run);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* out, cudaGraph_t g,
                                     const cudaGraphNode_t* after, size_t n, void* to,
                                     const void* from, size_t bytes, cudaMemcpyKind kind) {
    return add_node(out, g, after, n, cudaGraphNodeTypeMemcpy,
                    [=] { return copy(to, from, bytes, kind, nullptr, true, {"", 0}); });
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* out, cudaGraph_t g,
                                   const cudaGraphNode_t* after, size_t n,
                                   const cudaMemcpy3DParms* p) {
    cudaMemcpy3DParms q = *p;
    return add_node(out, g, after, n, cudaGraphNodeTypeMemcpy, [q] { return cudaMemcpy3D(&q); });
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* out, cudaGraph_t g,
                                   const cudaGraphNode_t* after, size_t n,
                                   const cudaMemsetParams* p) {
    cudaMemsetParams q = *p;
    return add_node(out, g, after, n, cudaGraphNodeTypeMemset, [q] {
        open_device();
        for (size_t y = 0; y < q.height; ++y)
            for (size_t x = 0; x < q.width; ++x)
                memcpy((char*)q.dst + y * q.pitch + x * q.elementSize, &q.value, q.elementSize);
        close_device();
        return cudaSuccess;
    });
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* after,
                                 size_t n, const cudaHostNodeParams* p) {
    cudaHostNodeParams q = *p;
    return add_node(out, g, after, n, cudaGraphNodeTypeHost, [q] {
        Callback here;
        q.fn(q.userData);
        return cudaSuccess;
    });
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* after,
                                  size_t n) {
    return add_node(out, g, after, n, cudaGraphNodeTypeEmpty, nullptr);
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, size_t n) {
    for (size_t i = 0; i < n; ++i)
        to[i]->after.push_back(from[i]);
    return cudaSuccess;
}
