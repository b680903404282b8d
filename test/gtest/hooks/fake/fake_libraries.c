/*
 * Libraries that an owner of UCP datatypes may be mistaken for; one file, compiled once for each:
 * AN_MPICH, AN_UNKNOWN_MPI, and USES_OPEN_MPI, which is linked to libfake_open_mpi.so.
 */
#if defined(AN_MPICH)
int MPIR_Process;
int MPI_Init(void) {
    return 0;
}
#elif defined(AN_UNKNOWN_MPI)
int MPI_Init(void) {
    return 0;
}
#elif defined(USES_OPEN_MPI)
extern int mca_pml_ucx_component;
int *fake_use(void) {
    return &mca_pml_ucx_component;
}
#endif

void fake_operation(void) {}
