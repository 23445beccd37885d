// expect: host-pointer; line 5; mode: fast
// cudaMemset is given an array of the host.
int main() {
    float host[16];
    cudaMemset(host, 0, sizeof(host));
    return host[0] > 1e30f;
}
