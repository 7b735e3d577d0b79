// The BLAS and LAPACK routines the core calls, handed in by the Python layer (SciPy's), so that
// nothing is linked twice. Fortran conventions: column-major, arguments by pointer.
#pragma once

namespace kfu {

struct Lapack {
  using Trsv = void (*)(char* uplo, char* trans, char* diag, int* n, double* a, int* lda, double* x,
                        int* incx);
  using Rot = void (*)(int* n, double* x, int* incx, double* y, int* incy, double* c, double* s);
  using Trsm = void (*)(char* side, char* uplo, char* trans, char* diag, int* m, int* n,
                        double* alpha, double* a, int* lda, double* b, int* ldb);
  using Gemv = void (*)(char* trans, int* m, int* n, double* alpha, double* a, int* lda, double* x,
                        int* incx, double* beta, double* y, int* incy);
  using Gemm = void (*)(char* transa, char* transb, int* m, int* n, int* k, double* alpha,
                        double* a, int* lda, double* b, int* ldb, double* beta, double* c,
                        int* ldc);
  using Potrf = void (*)(char* uplo, int* n, double* a, int* lda, int* info);

  Trsv dtrsv = nullptr;
  Rot drot = nullptr;
  Trsm dtrsm = nullptr;
  Gemv dgemv = nullptr;
  Gemm dgemm = nullptr;
  Potrf dpotrf = nullptr;
};

}  // namespace kfu
