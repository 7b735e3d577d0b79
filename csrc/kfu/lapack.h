// The BLAS and LAPACK routines the core calls, handed in by the Python layer (SciPy's), so that
// nothing is linked twice. Fortran conventions: column-major, arguments by pointer.
#pragma once

namespace kfu {

struct Lapack {
  using Trsv = void (*)(char* uplo, char* trans, char* diag, int* n, double* a, int* lda, double* x,
                        int* incx);
  using Rot = void (*)(int* n, double* x, int* incx, double* y, int* incy, double* c, double* s);

  Trsv dtrsv = nullptr;
  Rot drot = nullptr;
};

}  // namespace kfu
