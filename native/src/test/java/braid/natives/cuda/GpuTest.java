package braid.natives.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import braid.natives.cuda.MemoryOperation.Action;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.bytedeco.cuda.global.cudart;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Every driver call, on the first GPU of this machine.
@SuppressWarnings("restricted")
class GpuTest {
  private static final int COUNT = 1000;
  private static final long BYTES = COUNT * 4L;

  /// Multiplies `count` floats.
  private static final String SCALE =
      """
      .version 8.0
      .target sm_70
      .address_size 64
      .visible .entry scale(.param .u64 data, .param .u32 count, .param .f32 by)
      {
        .reg .pred %p;
        .reg .b32 %r<5>;
        .reg .b64 %d<4>;
        .reg .f32 %f<3>;
        ld.param.u64 %d1, [data];
        ld.param.u32 %r1, [count];
        ld.param.f32 %f1, [by];
        mov.u32 %r2, %ctaid.x;
        mov.u32 %r3, %ntid.x;
        mov.u32 %r4, %tid.x;
        mad.lo.u32 %r2, %r2, %r3, %r4;
        setp.ge.u32 %p, %r2, %r1;
        @%p ret;
        cvta.to.global.u64 %d1, %d1;
        mul.wide.u32 %d2, %r2, 4;
        add.u64 %d3, %d1, %d2;
        ld.global.f32 %f2, [%d3];
        mul.f32 %f2, %f2, %f1;
        st.global.f32 [%d3], %f2;
        ret;
      }
      """;

  private Gpu gpu;
  private GpuStream stream;
  private MemorySegment host;
  private long device;

  @BeforeEach
  void open() {
    var missing = Gpu.missing();
    assumeTrue(missing.isEmpty(), () -> missing.orElse(""));
    gpu = Gpu.open(0, "the test");
    stream = gpu.stream(gpu.greatestPriority());
    host = MemorySegment.ofAddress(gpu.allocatePinned(BYTES)).reinterpret(BYTES);
    device = gpu.allocate(BYTES);
  }

  @AfterEach
  void close() {
    if (gpu != null) {
      gpu.free(device);
      gpu.freePinned(host.address());
      stream.close();
      gpu.close();
    }
  }

  private void count() {
    for (int i = 0; i < COUNT; i++) {
      host.setAtIndex(ValueLayout.JAVA_FLOAT, i, i);
    }
    gpu.copy(device, host.address(), BYTES);
    host.fill((byte) 0);
  }

  private float number(int index) {
    return host.getAtIndex(ValueLayout.JAVA_FLOAT, index);
  }

  @Test
  void aGpuPrintsItsProperties() {
    assertThat(gpu.where()).isEqualTo("the test, device 0 (%s)".formatted(gpu.name()));
    assertThat(gpu.pciBusId()).matches("[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\\.0");
    assertThat(gpu.multiprocessors()).isPositive();
    assertThat(gpu.architecture()).isGreaterThanOrEqualTo(70);
    assertThat(gpu.driverVersion()).isGreaterThanOrEqualTo(13_000);
    assertThat(gpu.greatestPriority()).isLessThanOrEqualTo(gpu.leastPriority());
  }

  @Test
  void moreMemoryThanAvailableIsRefused() {
    assertThatThrownBy(() -> gpu.allocate(1L << 50))
        .isInstanceOf(GpuError.class)
        .hasMessageStartingWith("cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory) on ")
        .hasMessageContaining("1125899906842624 bytes were requested but ");
  }

  @Test
  void streamsWaitForWordsAndEvents() {
    try (var other = gpu.stream(gpu.leastPriority());
        var began = gpu.event(true);
        var done = gpu.event(true)) {
      gpu.fill(device, (byte) 0, BYTES);
      other.record(began);
      other.awaitAtLeast(device, 5);
      other.memoryOperations(
          List.of(
              new MemoryOperation(Action.EQUAL, device, 6),
              new MemoryOperation(Action.WRITE, device + 8, 7)));
      other.record(done);
      assertThat(done.isDone()).isFalse();
      stream.write(device, 6);
      stream.await(done);
      stream.copy(host.address(), device, BYTES);
      stream.synchronize();
      assertThat(host.getAtIndex(ValueLayout.JAVA_LONG, 1)).isEqualTo(7);
      assertThat(done.isDone()).isTrue();
      assertThat(done.millisecondsSince(began)).isPositive();
    }
  }

  @Test
  void launchesKernelsAlsoFromAGraph() {
    count();
    try (var module = gpu.load(SCALE.getBytes(StandardCharsets.US_ASCII))) {
      var kernel = module.kernel("scale");
      stream.beginCapture();
      kernel.launch(stream, 8, 128, 0, device, COUNT, 2f);
      stream.copy(host.address(), device, BYTES);
      try (var graph = stream.endCapture()) {
        assertThat(graph.nodes()).isEqualTo(2);
        graph.upload(stream);
        graph.launch(stream);
        stream.synchronize();
        assertThat(number(COUNT - 1)).isEqualTo(2f * (COUNT - 1));
        graph.launch(stream);
        stream.synchronize();
        assertThat(number(COUNT - 1)).isEqualTo(4f * (COUNT - 1));
      }
      kernel.launch(stream, 8, 128, 0, device, COUNT, 3f);
      stream.copy(host.address(), device, BYTES);
      stream.synchronize();
      assertThat(stream.isDone()).isTrue();
      assertThat(number(COUNT - 1)).isEqualTo(12f * (COUNT - 1));
      assertThatThrownBy(() -> kernel.launch(stream, 8, 128, 0, device, COUNT))
          .hasMessage("scale takes 3 arguments but received 2");
      assertThatThrownBy(() -> kernel.launch(stream, 8, 128, 0, device, 1L, 2f))
          .hasMessage("argument 1 of scale takes 4 bytes but Long has 8");
    }
  }

  @Test
  void memoryFreedDuringACaptureIsFreedAfterIt() {
    long more = gpu.allocate(BYTES);
    stream.beginCapture();
    stream.fill(more, (byte) 1, BYTES);
    gpu.free(more);
    try (var graph = stream.endCapture()) {
      assertThat(graph.nodes()).isEqualTo(1);
    }
    assertThatThrownBy(() -> gpu.free(more)).as("freed already").hasMessageContaining("cuMemFree");
  }

  @Test
  void allocationsAreMappedSideBySide() {
    assumeTrue(VirtualMemory.supported(gpu), "this GPU shares no memory by file descriptor");
    assertThat(gpu.granularity().recommended()).isPositive();
    count();
    try (var first = VirtualMemory.create(gpu, 1);
        var second = VirtualMemory.create(gpu, 1);
        var imported = VirtualMemory.imported(gpu, second.export(), second.bytes());
        var range = AddressRange.reserve(gpu, 2 * first.bytes(), 0);
        var again = AddressRange.reserve(gpu, second.bytes(), 0)) {
      assertThat(first.bytes()).isEqualTo(gpu.granularity().recommended());
      range.map(0, first);
      range.map(first.bytes(), second);
      again.map(0, imported);
      var seam = range.address() + first.bytes();
      gpu.copy(seam - 8, device + 4, 16);
      gpu.copy(host.address(), again.address(), 8);
      assertThat(number(0)).isEqualTo(3);
      assertThat(number(1)).isEqualTo(4);
    }
  }

  @Test
  void handlesAreOfWholeAllocations() {
    assertThat(Ipc.export(gpu, device)).hasSize(cudart.CU_IPC_HANDLE_SIZE);
    assertThatThrownBy(() -> Ipc.export(gpu, device + 16))
        .hasMessageStartingWith("a handle exports a whole allocation but the address is 16 bytes");
  }
}
