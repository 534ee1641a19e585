/* What the library libassay-mpi.so offers: messages over MPI as plain functions, so that the program itself neither
   needs MPI to be compiled nor to start. */
#pragma once
#include <stddef.h>

struct AssayMpi {
  int version; /* of this table */
  /* Starts MPI: as a rank of its launcher, or alone. */
  void (*connect)(int* rank, int* count);
  const char* (*library)(void);
  /* Returns at once; the owner keeps the bytes until they have arrived, and is then released. */
  void (*send)(int to, int tag, const void* bytes, size_t size, void* owner, void (*release)(void* owner));
  /* The size of the next message, waited for at most so many seconds; below 0: none came. */
  long (*next)(int from, int tag, double seconds);
  /* Takes it. */
  void (*receive)(void* bytes, size_t size);
  /* Waits until everything sent has arrived, and ends MPI. */
  void (*disconnect)(void);
};

#define ASSAY_MPI_VERSION 2
#define ASSAY_MPI_TABLE "assay_mpi_table"
