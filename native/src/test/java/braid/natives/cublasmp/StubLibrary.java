package braid.natives.cublasmp;

import static java.lang.foreign.ValueLayout.ADDRESS;

import braid.natives.ForeignLibrary;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/// A substitute of cuBLASMp that is compiled by gcc and records its calls. Handles are counted from
/// 1 in the order of their creation. Loaded from a file of its own, so that a process can load
/// several.
final class StubLibrary {
  private static final String CODE =
      """
      #include <inttypes.h>
      #include <stdint.h>
      #include <stdio.h>
      #include <string.h>
      #ifndef VERSION
      #define VERSION 800
      #endif
      #ifndef DEVICE_BYTES
      #define DEVICE_BYTES 4096
      #endif
      #ifndef HOST_BYTES
      #define HOST_BYTES 64
      #endif
      #ifndef FAILING
      #define FAILING ""
      #endif
      #ifndef STATUS
      #define STATUS 0
      #endif
      typedef int64_t i;
      static FILE *file;
      static i handles;
      void stub_log(const char *path) {
        if (file) fclose(file);
        file = fopen(path, "w");
        handles = 0;
      }
      #define LOG(...) (fprintf(file, __VA_ARGS__), fputc('\\n', file), fflush(file))
      static int end(const char *name) { return strcmp(name, FAILING) ? 0 : STATUS; }
      #define N "%" PRId64
      #define MADE (*made = ++handles)
      int cublasMpGetVersion(int *version) { *version = VERSION; return end("cublasMpGetVersion"); }
      int cublasMpCreate(i *made, i stream) {
        LOG("create stream " N " -> " N, stream, MADE);
        return end("cublasMpCreate");
      }
      int cublasMpDestroy(i handle) {
        LOG("destroy " N, handle);
        return end("cublasMpDestroy");
      }
      int cublasMpSetStream(i handle, i stream) {
        LOG("stream " N " of " N, stream, handle);
        return end("cublasMpSetStream");
      }
      int cublasMpGridCreate(i rows, i columns, int order, i communicator, i *made) {
        LOG("grid " N " x " N " order %d of " N " -> " N, rows, columns, order, communicator, MADE);
        return end("cublasMpGridCreate");
      }
      int cublasMpGridDestroy(i grid) {
        LOG("destroy grid " N, grid);
        return end("cublasMpGridDestroy");
      }
      int cublasMpBufferRegister(i grid, i address, uint64_t bytes) {
        LOG("register " N " bytes " N " grid " N, address, bytes, grid);
        return end("cublasMpBufferRegister");
      }
      int cublasMpBufferDeregister(i grid, i address) {
        LOG("deregister " N " grid " N, address, grid);
        return end("cublasMpBufferDeregister");
      }
      int cublasMpMatrixDescriptorCreate(
          i m, i n, i mb, i nb, i rsrc, i csrc, i lead, int type, i grid, i *made) {
        LOG("matrix " N " x " N " blocks " N " x " N " lead " N " grid " N
            " type %d first " N " " N " -> " N,
            m, n, mb, nb, lead, grid, type, rsrc, csrc, MADE);
        return end("cublasMpMatrixDescriptorCreate");
      }
      int cublasMpMatrixDescriptorDestroy(i matrix) {
        LOG("destroy matrix " N, matrix);
        return end("cublasMpMatrixDescriptorDestroy");
      }
      int cublasMpMatmulDescriptorCreate(i *made, int compute) {
        LOG("matmul compute %d -> " N, compute, MADE);
        return end("cublasMpMatmulDescriptorCreate");
      }
      int cublasMpMatmulDescriptorDestroy(i matmul) {
        LOG("destroy matmul " N, matmul);
        return end("cublasMpMatmulDescriptorDestroy");
      }
      int cublasMpMatmulDescriptorSetAttribute(
          i matmul, int attribute, const void *value, uint64_t bytes) {
        LOG("attribute %d=%d bytes " N " of " N, attribute, *(const int *)value, bytes, matmul);
        return end("cublasMpMatmulDescriptorSetAttribute");
      }
      #define PRODUCT \\
        i handle, i matmul, i m, i n, i k, const float *alpha, i a, i ia, i ja, i matrixA, i b, \\
            i ib, i jb, i matrixB, const float *beta, i c, i ic, i jc, i matrixC, i d, i id, i jd, \\
            i matrixD
      #define LOG_PRODUCT(name) \\
        fprintf(file, \\
                name " " N " " N " m " N " n " N " k " N " alpha %g A " N " " N " " N " " N " B " N \\
                " " N " " N " " N " beta %g C " N " " N " " N " " N " D " N " " N " " N " " N, \\
                handle, matmul, m, n, k, *alpha, a, ia, ja, matrixA, b, ib, jb, matrixB, *beta, c, \\
                ic, jc, matrixC, d, id, jd, matrixD)
      int cublasMpMatmul_bufferSize(PRODUCT, uint64_t *device, uint64_t *host) {
        LOG_PRODUCT("sizes");
        LOG("");
        *device = DEVICE_BYTES;
        *host = HOST_BYTES;
        return end("cublasMpMatmul_bufferSize");
      }
      int cublasMpMatmul(PRODUCT, i device, uint64_t bytes, char *host, uint64_t hostBytes) {
        LOG_PRODUCT("multiply");
        LOG(" device " N " bytes " N " host %s bytes " N, device, bytes, host ? "some" : "none",
            hostBytes);
        memset(host, 1, hostBytes);
        return end("cublasMpMatmul");
      }
      """;

  private final ForeignLibrary library;

  private StubLibrary(ForeignLibrary library) {
    this.library = library;
  }

  /// Compiles and loads it, or skips the test if gcc is not installed.
  ///
  /// @param options definitions: `-DVERSION=801`, `-DDEVICE_BYTES=0`, `-DHOST_BYTES=0`,
  ///   `-DFAILING="cublasMpMatmul"` with `-DSTATUS=5`, `-DcublasMpCreate=renamed` to lack a
  ///   function
  static StubLibrary compile(Path folder, String... options)
      throws IOException, InterruptedException {
    var source = Files.writeString(folder.resolve("cublasmp.c"), CODE);
    var file = folder.resolve("libcublasmp.so.0");
    var all = Stream.concat(Stream.of("-w"), Stream.of(options)).toArray(String[]::new);
    Gcc.library(source, file, all);
    return new StubLibrary(ForeignLibrary.at(file));
  }

  CublasMpCalls calls() {
    return CublasMpCalls.of(library);
  }

  /// Starts a new record, in which handles are counted from 1 again.
  void record(Path file) {
    try (var arena = Arena.ofConfined()) {
      library
          .function("stub_log", FunctionDescriptor.ofVoid(ADDRESS))
          .invokeExact(arena.allocateFrom(file.toString()));
    } catch (Throwable e) {
      throw ForeignLibrary.unexpected(e);
    }
  }
}
