package braid.natives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.cuda.AddressRange;
import braid.natives.cuda.Gpu;
import braid.natives.cuda.GpuError;
import braid.natives.cuda.GpuStream;
import braid.natives.cuda.VirtualMemory;
import braid.natives.load.Libraries;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Ranks are threads here, each with its own GPU: two ranks if there are two GPUs, else one.
class NcclCommunicatorTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int COUNT = 1 << 20;
  private static final long BYTES = COUNT * 4L;
  private static final NcclCommunicator.Configuration PLAIN =
      new NcclCommunicator.Configuration(false, 0, 0);
  private static final NcclCommunicator.Configuration COPY_ENGINES =
      new NcclCommunicator.Configuration(true, 0, 0);

  @BeforeEach
  void needsAGpuAndTheLibrary() {
    var missing = Gpu.missing();
    assumeTrue(missing.isEmpty(), () -> missing.orElse(""));
    assumeTrue(Libraries.find(Libraries.Library.NCCL).isPresent(), "NCCL is not installed here");
  }

  @Test
  void collectivesMoveAndAddAsPlainLoops() throws Exception {
    onAll(
        PLAIN,
        (rank, gpu, communicator, stream) -> {
          var size = communicator.size();
          var from = gpu.allocate(BYTES * size);
          var to = gpu.allocate(BYTES * size);
          write(gpu, from, COUNT * size, rank + 1);

          communicator.allGather(from, to, COUNT, Nccl.Type.FP32, stream);
          stream.synchronize();
          for (int other = 0; other < size; other++) {
            assertThat(read(gpu, to + other * BYTES + BYTES - 4)).isEqualTo(other + 1);
          }
          communicator.allReduceSum(from, to, COUNT, Nccl.Type.FP32, stream);
          stream.synchronize();
          assertThat(read(gpu, to + BYTES - 4)).isEqualTo(size * (size + 1) / 2f);
          communicator.reduceScatterSum(from, to, COUNT, Nccl.Type.FP32, stream);
          stream.synchronize();
          assertThat(read(gpu, to)).isEqualTo(size * (size + 1) / 2f);
          communicator.broadcast(from, to, COUNT, Nccl.Type.FP32, size - 1, stream);
          stream.synchronize();
          assertThat(read(gpu, to)).isEqualTo(size);
          communicator.allToAll(from, to, COUNT, Nccl.Type.FP32, stream);
          stream.synchronize();
          assertThat(read(gpu, to + (size - 1) * BYTES)).isEqualTo(size);
          var next = (rank + 1) % size;
          var previous = (rank + size - 1) % size;
          communicator.group(
              () -> {
                communicator.send(from, COUNT, Nccl.Type.FP32, next, stream);
                communicator.receive(to, COUNT, Nccl.Type.FP32, previous, stream);
              });
          stream.synchronize();
          assertThat(read(gpu, to)).isEqualTo(previous + 1);
          assertThat(communicator.asynchronousError()).isEmpty();
          gpu.free(from);
          gpu.free(to);
        });
  }

  @Test
  void gathersByCopyEnginesFromWindows() throws Exception {
    assumeTrue(Nccl.has("ncclAlltoAll"), "copy-engine collectives need NCCL 2.28");
    assumeTrue(Gpu.count() > 1, "windows need two ranks; this machine has one GPU");
    onAll(
        COPY_ENGINES,
        (rank, gpu, communicator, stream) -> {
          var size = communicator.size();
          try (var memory = VirtualMemory.create(gpu, BYTES * (size + 1));
              var range = AddressRange.reserve(gpu, memory.bytes(), 0)) {
            range.map(0, memory);
            var from = range.address();
            var to = from + BYTES;
            try (var window = communicator.register(range.address(), memory.bytes())) {
              assertThat(window.isOf(communicator)).isTrue();
              write(gpu, from, COUNT, rank + 1);
              communicator.allGather(from, to, COUNT, Nccl.Type.FP32, stream);
              stream.synchronize();
              for (int other = 0; other < size; other++) {
                assertThat(read(gpu, to + other * BYTES)).isEqualTo(other + 1);
              }
            }
          }
        });
  }

  @Test
  void joiningWithoutTheOtherRanksTimesOut() {
    try (var gpu = Gpu.open(0, "the test")) {
      assertThatThrownBy(
              () ->
                  NcclCommunicator.join(
                      gpu, Nccl.uniqueId(), 0, 2, PLAIN, () -> {}, Duration.ofMillis(300)))
          .isInstanceOf(GpuError.class)
          .hasMessageContaining("not all of 2 ranks have joined within 300 ms");
    }
  }

  @Test
  void theCheckEndsAJoin() {
    try (var gpu = Gpu.open(0, "the test")) {
      assertThatThrownBy(
              () ->
                  NcclCommunicator.join(
                      gpu,
                      Nccl.uniqueId(),
                      0,
                      2,
                      PLAIN,
                      () -> {
                        throw new CancellationException("released");
                      },
                      LONG))
          .isInstanceOf(CancellationException.class);
    }
  }

  @Test
  void aCommunicatorEndsOnceAndForGood() throws Exception {
    onAll(
        PLAIN,
        (_, _, communicator, stream) -> {
          communicator.abort();
          communicator.abort();
          communicator.close();
          assertThat(communicator.asynchronousError()).isEmpty();
          assertThatThrownBy(() -> communicator.allReduceSum(0, 0, 1, Nccl.Type.FP32, stream))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("closed");
        });
  }

  /// Work of one rank.
  private interface Body {
    void run(int rank, Gpu gpu, NcclCommunicator communicator, GpuStream stream);
  }

  private static void onAll(NcclCommunicator.Configuration configuration, Body body)
      throws Exception {
    var size = Math.min(2, Gpu.count());
    var id = Nccl.uniqueId();
    try (var threads = Executors.newFixedThreadPool(size)) {
      var ranks = new ArrayList<Future<?>>();
      for (int rank = 0; rank < size; rank++) {
        var number = rank;
        ranks.add(
            threads.submit(
                (Callable<Boolean>)
                    () -> {
                      try (var gpu = Gpu.open(number, "rank " + number);
                          var stream = gpu.stream(gpu.leastPriority());
                          var communicator =
                              NcclCommunicator.join(
                                  gpu, id, number, size, configuration, () -> {}, LONG)) {
                        body.run(number, gpu, communicator, stream);
                      }
                      return true;
                    }));
      }
      for (var rank : ranks) {
        rank.get();
      }
    }
  }

  private static void write(Gpu gpu, long address, int count, float value) {
    var host = gpu.allocatePinned(count * 4L);
    var view = view(host, count * 4L);
    for (int i = 0; i < count; i++) {
      view.setAtIndex(ValueLayout.JAVA_FLOAT, i, value);
    }
    gpu.copy(address, host, count * 4L);
    gpu.freePinned(host);
  }

  private static float read(Gpu gpu, long address) {
    var host = gpu.allocatePinned(4);
    gpu.copy(host, address, 4);
    var value = view(host, 4).get(ValueLayout.JAVA_FLOAT, 0);
    gpu.freePinned(host);
    return value;
  }

  @SuppressWarnings("restricted")
  private static MemorySegment view(long host, long bytes) {
    return MemorySegment.ofAddress(host).reinterpret(bytes);
  }
}
