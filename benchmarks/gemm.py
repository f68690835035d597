"""The design's matrix product, as a user writes it: what compile costs are measured on."""

import tilenest as tn


@tn.kernel
def gemm(A, B, C, *, bm=96, bn=256, bk=256):
    M, K = A.shape
    N = B.shape[1]
    m, n, k = tn.axis("m", bm), tn.axis("n", bn), tn.axis("k", bk)
    for block in tn.parallel(tn.cdiv(M, bm), tn.cdiv(N, bn)):
        i, j = block.index()
        acc = tn.zeros((m, n), tn.float32)
        for step in block.pipeline(tn.cdiv(K, bk), window=2):
            k0 = step.index() * bk
            step.stage("load")
            a = A[(i * bm, k0), (m, k)]
            b = B[(k0, j * bn), (k, n)]
            step.stage("compute")
            acc = tn.mma(a, b, acc)
        C((i * bm, j * bn), (m, n)).store(acc)
