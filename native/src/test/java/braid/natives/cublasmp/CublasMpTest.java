package braid.natives.cublasmp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.natives.cublasmp.CublasMp.Algorithm;
import braid.natives.cublasmp.CublasMp.Operation;
import braid.natives.cublasmp.CublasMp.Shape;
import braid.natives.cuda.GpuError;
import braid.natives.load.BraidNativeMissing;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Calls of a substitute library.
class CublasMpTest {
  private static final long COMMUNICATOR = 192;
  private static final long STREAM = 81;
  private static final String PLACE = "GPU 1 (rank 1)";

  private static final Shape GATHERED =
      new Shape(Operation.ALL_GATHER, 24, 5, 7, CublasMp.Type.BF16, false, Algorithm.DEFAULT, 0);
  private static final Shape SCATTERED =
      new Shape(
          Operation.REDUCE_SCATTER, 24, 5, 7, CublasMp.Type.FP32, true, Algorithm.SPLIT_P2P, 8);

  @TempDir private Path folder;
  private Path record = Path.of("");
  private int stubs;
  private int current;

  @BeforeEach
  void nameOfTheRecord() {
    record = folder.resolve("calls");
  }

  /// Returns a library in a folder of its own, with an empty record.
  private StubLibrary stub(String... options) throws IOException, InterruptedException {
    stubs++;
    var own = Files.createDirectory(folder.resolve("" + stubs));
    var stub = StubLibrary.compile(own, options);
    stub.record(record);
    return stub;
  }

  private CublasMp open(StubLibrary stub, int ranks) {
    return CublasMp.open(stub.calls(), COMMUNICATOR, STREAM, ranks, PLACE, () -> current++);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          2 | ALL_GATHER     | false | FP32 | 0  | m 10 n 24 k 7  | 10 x 7 blocks 5 x 7 lead 5 grid 2 | 7 x 24 blocks 7 x 12 lead 7 grid 3  | 10 x 24 blocks 5 x 12 lead 5 grid 2 | 0=0 1=0 3=0
          2 | ALL_GATHER     | true  | FP16 | 2  | m 10 n 24 k 7  | 7 x 10 blocks 7 x 5 lead 7 grid 3 | 7 x 24 blocks 7 x 12 lead 7 grid 3  | 10 x 24 blocks 5 x 12 lead 5 grid 2 | 0=1 1=0 3=0
          2 | REDUCE_SCATTER | false | FP16 | 2  | m 5 n 24 k 14  | 5 x 14 blocks 5 x 7 lead 5 grid 3 | 14 x 24 blocks 7 x 12 lead 7 grid 2 | 5 x 24 blocks 5 x 12 lead 5 grid 3  | 0=0 1=0 3=0 27=2
          2 | REDUCE_SCATTER | true  | BF16 | 14 | m 5 n 24 k 14  | 14 x 5 blocks 7 x 5 lead 7 grid 2 | 14 x 24 blocks 7 x 12 lead 7 grid 2 | 5 x 24 blocks 5 x 12 lead 5 grid 3  | 0=1 1=0 3=0 27=14
          2 | ALL_REDUCE     | true  | BF16 | 14 | m 5 n 24 k 14  | 14 x 5 blocks 7 x 5 lead 7 grid 2 | 14 x 24 blocks 7 x 24 lead 7 grid 2 | 5 x 48 blocks 5 x 24 lead 5 grid 3  | 0=1 1=0 3=0 5=1
          4 | ALL_GATHER     | false | BF16 | 14 | m 20 n 24 k 7  | 20 x 7 blocks 5 x 7 lead 5 grid 2 | 7 x 24 blocks 7 x 6 lead 7 grid 3   | 20 x 24 blocks 5 x 6 lead 5 grid 2  | 0=0 1=0 3=0
          4 | ALL_GATHER     | true  | FP32 | 0  | m 20 n 24 k 7  | 7 x 20 blocks 7 x 5 lead 7 grid 3 | 7 x 24 blocks 7 x 6 lead 7 grid 3   | 20 x 24 blocks 5 x 6 lead 5 grid 2  | 0=1 1=0 3=0
          4 | REDUCE_SCATTER | false | FP32 | 0  | m 5 n 24 k 28  | 5 x 28 blocks 5 x 7 lead 5 grid 3 | 28 x 24 blocks 7 x 6 lead 7 grid 2  | 5 x 24 blocks 5 x 6 lead 5 grid 3   | 0=0 1=0 3=0 27=0
          4 | REDUCE_SCATTER | true  | FP16 | 2  | m 5 n 24 k 28  | 28 x 5 blocks 7 x 5 lead 7 grid 2 | 28 x 24 blocks 7 x 6 lead 7 grid 2  | 5 x 24 blocks 5 x 6 lead 5 grid 3   | 0=1 1=0 3=0 27=2
          4 | ALL_REDUCE     | true  | FP32 | 0  | m 5 n 24 k 28  | 28 x 5 blocks 7 x 5 lead 7 grid 2 | 28 x 24 blocks 7 x 24 lead 7 grid 2 | 5 x 96 blocks 5 x 24 lead 5 grid 3  | 0=1 1=0 3=0 5=1
          """)
  void everyCallHasItsSizes(
      int ranks,
      Operation operation,
      boolean weightTransposed,
      CublasMp.Type type,
      int typeNumber,
      String sizes,
      String weight,
      String input,
      String output,
      String attributes)
      throws Exception {
    var shape = new Shape(operation, 24, 5, 7, type, weightTransposed, Algorithm.DEFAULT, 0);
    try (var library = open(stub(), ranks);
        var product = library.product(shape)) {
      assertThat(product.workspaceBytes()).isEqualTo(4096);
      product.use(65_536);
      product.enqueue(1001, 1002, 1003, STREAM);
    }
    // The workspace belongs to the output's grid.
    int outputGrid = operation == Operation.ALL_GATHER ? 2 : 3;
    var calls =
        """
        create stream 81 -> 1
        grid %d x 1 order 0 of 192 -> 2
        grid 1 x %d order 1 of 192 -> 3
        matrix %s type %d first 0 0 -> 4
        matrix %s type %d first 0 0 -> 5
        matrix %s type %d first 0 0 -> 6
        matmul compute 68 -> 7
        %s
        sizes 1 7 %s alpha 1 A 0 1 1 4 B 0 1 1 5 beta 0 C 0 1 1 0 D 0 1 1 6
        register 65536 bytes 4096 grid %s
        multiply 1 7 %s alpha 1 A 1001 1 1 4 B 1002 1 1 5 beta 0 C 0 1 1 0 D 1003 1 1 6 \
        device 65536 bytes 4096 host some bytes 64
        deregister 65536 grid %s
        destroy matmul 7
        destroy matrix 6
        destroy matrix 5
        destroy matrix 4
        destroy grid 3
        destroy grid 2
        destroy 1
        """
            .formatted(
                ranks,
                ranks,
                weight,
                typeNumber,
                input,
                typeNumber,
                output,
                typeNumber,
                attributes(attributes),
                sizes,
                outputGrid,
                sizes,
                outputGrid);
    assertThat(record).hasContent(calls);
  }

  private static String attributes(String pairs) {
    return Arrays.stream(pairs.split(" ", -1))
        .map("attribute %s bytes 4 of 7"::formatted)
        .collect(Collectors.joining("\n"));
  }

  @ParameterizedTest
  @CsvSource({
    "DEFAULT, 0",
    "SPLIT_P2P, 1",
    "SPLIT_MULTICAST, 2",
    "ATOMIC_P2P, 3",
    "ATOMIC_MULTICAST, 4",
    "NO_OVERLAP, 5"
  })
  void algorithmAndWorkersAreAttributes(Algorithm algorithm, int number) throws Exception {
    var shape = new Shape(Operation.ALL_GATHER, 24, 5, 7, CublasMp.Type.FP16, false, algorithm, 16);
    try (var library = open(stub(), 2)) {
      library.product(shape).close();
    }
    assertThat(calls("attribute"))
        .containsExactly(
            "attribute 0=0 bytes 4 of 7",
            "attribute 1=0 bytes 4 of 7",
            "attribute 3=" + number + " bytes 4 of 7",
            "attribute 4=16 bytes 4 of 7");
  }

  private List<String> calls(String... words) throws IOException {
    try (var lines = Files.lines(record)) {
      return lines.filter(line -> Stream.of(words).anyMatch(line::startsWith)).toList();
    }
  }

  /// Two products, of which close of the library closes the first.
  private void useTwoProducts(CublasMp library) {
    try (library) {
      var first = library.product(GATHERED);
      try (var second = library.product(SCATTERED)) {
        first.use(65_536);
        second.use(131_072);
        first.enqueue(1, 2, 3, STREAM);
        second.enqueue(4, 5, 6, STREAM);
        second.enqueue(4, 5, 6, 82);
        first.enqueue(1, 2, 3, 82);
      }
      first.enqueue(1, 2, 3, STREAM);
    }
  }

  @Test
  void everythingIsReleasedInReverseOrder() throws Exception {
    var library = open(stub(), 2);
    useTwoProducts(library);
    library.close();
    assertThat(calls("destroy", "deregister"))
        .containsExactly(
            "deregister 131072 grid 3",
            "destroy matmul 11",
            "destroy matrix 10",
            "destroy matrix 9",
            "destroy matrix 8",
            "deregister 65536 grid 2",
            "destroy matmul 7",
            "destroy matrix 6",
            "destroy matrix 5",
            "destroy matrix 4",
            "destroy grid 3",
            "destroy grid 2",
            "destroy 1");
    assertThat(current).isGreaterThan(1);
    assertThatThrownBy(() -> library.product(GATHERED))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("cuBLASMp of GPU 1 (rank 1) is closed");
  }

  @Test
  void openProductsAreClosedFromTheLastOne() throws Exception {
    try (var library = open(stub(), 2)) {
      var first = library.product(GATHERED);
      var second = library.product(SCATTERED);
      assertThat(first).isNotSameAs(second);
    }
    assertThat(calls("destroy matmul", "destroy grid", "destroy 1"))
        .containsExactly(
            "destroy matmul 11",
            "destroy matmul 7",
            "destroy grid 3",
            "destroy grid 2",
            "destroy 1");
  }

  @Test
  void theStreamIsSetWhenItChanges() throws Exception {
    useTwoProducts(open(stub(), 2));
    assertThat(calls("stream", "multiply").stream().map(line -> line.replaceAll(" m .*", "")))
        .containsExactly(
            "multiply 1 7",
            "multiply 1 11",
            "stream 82 of 1",
            "multiply 1 11",
            "multiply 1 7",
            "stream 81 of 1",
            "multiply 1 7");
  }

  @Test
  void allRanksMakeTheSameCalls() throws Exception {
    var stub = stub();
    useTwoProducts(open(stub, 2));
    var second = folder.resolve("calls of the second rank");
    stub.record(second);
    useTwoProducts(open(stub, 2));
    assertThat(Files.readAllLines(record)).hasSize(43).isEqualTo(Files.readAllLines(second));
  }

  @Test
  void aProductWithoutWorkspaceNeedsNoUse() throws Exception {
    try (var library = open(stub("-DDEVICE_BYTES=0", "-DHOST_BYTES=0"), 2);
        var product = library.product(GATHERED)) {
      product.use(65_536);
      product.enqueue(1, 2, 3, STREAM);
    }
    assertThat(calls("register", "deregister")).isEmpty();
    assertThat(calls("multiply"))
        .singleElement()
        .asString()
        .endsWith("device 0 bytes 0 host none bytes 0");
  }

  @Test
  void aProductIsUsedBetweenUseAndClose() throws Exception {
    try (var library = open(stub(), 2)) {
      var product = library.product(GATHERED);
      assertThatThrownBy(() -> product.enqueue(1, 2, 3, STREAM))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage(
              "the product on GPU 1 (rank 1) has no workspace; call use with 4096 bytes of device"
                  + " memory");
      product.use(65_536);
      assertThatThrownBy(() -> product.use(65_536))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("the product on GPU 1 (rank 1) has a workspace; prepare another product");
      product.close();
      product.close();
      assertThatThrownBy(() -> product.enqueue(1, 2, 3, STREAM))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("the product on GPU 1 (rank 1) is closed");
    }
    assertThat(calls("multiply", "register")).containsExactly("register 65536 bytes 4096 grid 2");
    assertThat(calls("destroy matmul")).hasSize(1);
  }

  @Test
  void impossibleShapesAreRefused() throws Exception {
    assertThatThrownBy(
            () ->
                new Shape(
                    Operation.ALL_REDUCE, 4, 4, 4, CublasMp.Type.BF16, false, Algorithm.DEFAULT, 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "an all-reduce of cuBLASMp needs a transposed weight but the weight is K × N; store it"
                + " as N × K");
    assertThatThrownBy(
            () ->
                new Shape(
                    Operation.ALL_GATHER, 4, 0, 4, CublasMp.Type.BF16, false, Algorithm.DEFAULT, 0))
        .hasMessage("columns must be 1 or more but was 0");
    assertThatThrownBy(
            () ->
                new Shape(
                    Operation.ALL_GATHER, 4, 4, 4, CublasMp.Type.BF16, true, Algorithm.DEFAULT, -1))
        .hasMessage("workers must be 0 (the library chooses) or more but was -1");
    try (var library = open(stub(), 4)) {
      for (var operation : List.of(Operation.ALL_GATHER, Operation.REDUCE_SCATTER)) {
        var shape = new Shape(operation, 26, 4, 4, CublasMp.Type.BF16, true, Algorithm.DEFAULT, 0);
        assertThatThrownBy(() -> library.product(shape))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessage("rows of %s must be a multiple of the 4 ranks but were 26", operation);
      }
    }
    assertThat(calls("matrix")).isEmpty();
  }

  @Test
  void anOldVersionIsOneLine() throws Exception {
    var stub = stub("-DVERSION=701");
    assertThatThrownBy(stub::calls)
        .isInstanceOf(BraidNativeMissing.class)
        .hasMessage(
            "cuBLASMp must be 0.8 or later but was 0.7.1; pip install -U nvidia-cublasmp-cu13");
  }

  /// Its function that returns the version takes other arguments, so it is not called.
  @Test
  void anEarlyVersionIsToldByItsFunctions() throws Exception {
    var stub = stub("-DcublasMpBufferRegister=renamed", "-DVERSION=400");
    assertThatThrownBy(stub::calls)
        .isInstanceOf(BraidNativeMissing.class)
        .hasMessage(
            "cuBLASMp must be 0.8 or later but has no cublasMpBufferRegister; pip install -U nvidia-cublasmp-cu13");
  }

  @Test
  void aNewerVersionIsAccepted() throws Exception {
    open(stub("-DVERSION=1002"), 2).close();
    assertThat(calls("create")).hasSize(1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"cublasMpGetVersion", "cublasMpBufferDeregister", "cublasMpMatmul_bufferSize"})
  void aMissingFunctionIsOneLine(String function) throws Exception {
    var stub = stub("-D" + function + "=renamed");
    assertThatThrownBy(stub::calls)
        .isInstanceOf(UnsatisfiedLinkError.class)
        .hasMessage(
            "%s has no %s; a newer or older version may have it",
            folder.resolve("1/libcublasmp.so.0"), function);
  }

  @Test
  void aFailingProductIsOneLine() throws Exception {
    try (var library = open(stub("-DFAILING=\"cublasMpMatmul\"", "-DSTATUS=5"), 2);
        var product = library.product(GATHERED)) {
      product.use(65_536);
      assertThatThrownBy(() -> product.enqueue(1, 2, 3, STREAM))
          .isInstanceOf(GpuError.class)
          .hasMessage(
              "cublasMpMatmul failed: CUBLASMP_STATUS_EXECUTION_FAILED (status 5) on GPU 1 (rank 1);"
                  + " set CUBLASMP_LOG_LEVEL=1 to see why");
    }
    assertThat(calls("destroy")).hasSize(7);
  }

  @Test
  void aFailingRegistrationIsOneLine() throws Exception {
    try (var library = open(stub("-DFAILING=\"cublasMpBufferRegister\"", "-DSTATUS=7"), 2);
        var product = library.product(GATHERED)) {
      assertThatThrownBy(() -> product.use(65_536))
          .isInstanceOf(GpuError.class)
          .hasMessage(
              "cublasMpBufferRegister failed: CUBLASMP_STATUS_NOT_SUPPORTED (status 7) on GPU 1"
                  + " (rank 1); without a registered workspace cuBLASMp would silently not"
                  + " overlap; take over(COPY_ENGINE)");
      assertThatThrownBy(() -> product.enqueue(1, 2, 3, STREAM))
          .isInstanceOf(IllegalStateException.class);
    }
    assertThat(calls("deregister", "multiply")).isEmpty();
  }

  /// The library supports one handle per process and GPU.
  @Test
  void communicatorsOfAGpuShareItsHandle() throws Exception {
    var calls = stub().calls();
    try (var first = CublasMp.open(calls, COMMUNICATOR, STREAM, 2, PLACE, () -> {})) {
      try (var second = CublasMp.open(calls, COMMUNICATOR + 1, STREAM, 2, PLACE, () -> {})) {
        assertThat(second.handle()).isEqualTo(first.handle());
        second.direct(STREAM + 1);
      }
      assertThat(calls("destroy 1")).isEmpty();
      first.direct(STREAM);
      assertThat(calls("create")).hasSize(1);
    }
    assertThat(calls("stream")).hasSize(2);
    assertThat(calls("destroy 1")).hasSize(1);
  }

  @Test
  void aFailureWhilePreparingReleasesEverything() throws Exception {
    try (var library = open(stub("-DFAILING=\"cublasMpMatmul_bufferSize\"", "-DSTATUS=3"), 2)) {
      assertThatThrownBy(() -> library.product(GATHERED))
          .hasMessageStartingWith(
              "cublasMpMatmul_bufferSize failed: CUBLASMP_STATUS_INVALID_VALUE (status 3) on");
      assertThat(calls("destroy"))
          .containsExactly(
              "destroy matmul 7", "destroy matrix 6", "destroy matrix 5", "destroy matrix 4");
    }
    var failing = stub("-DFAILING=\"cublasMpGridCreate\"", "-DSTATUS=99");
    assertThatThrownBy(() -> open(failing, 2))
        .hasMessageStartingWith("cublasMpGridCreate failed: an unknown status (status 99) on");
    assertThat(calls("destroy")).containsExactly("destroy 1");
  }

  @Test
  void aFailingReleaseDoesNotStopTheOthers() throws Exception {
    var library = open(stub("-DFAILING=\"cublasMpMatrixDescriptorDestroy\"", "-DSTATUS=6"), 2);
    library.product(GATHERED).use(65_536);
    assertThatThrownBy(library::close)
        .hasMessageStartingWith(
            "cublasMpMatrixDescriptorDestroy failed: CUBLASMP_STATUS_INTERNAL_ERROR (status 6)")
        .satisfies(thrown -> assertThat(thrown.getSuppressed()).hasSize(2));
    assertThat(calls("destroy", "deregister")).hasSize(8);
  }

  @Test
  void theReasonForAMissingLibraryIsOneLine() {
    CublasMp.missing().ifPresent(reason -> assertThat(reason).contains("; ").doesNotContain("\n"));
  }
}
