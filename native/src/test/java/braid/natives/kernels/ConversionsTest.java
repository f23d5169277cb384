package braid.natives.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Compares the kernels' conversions and bounds, compiled for this processor, with Java's.
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ConversionsTest {
  private static final String PROGRAM =
      """
      #include <cmath>
      #include "numbers.cuh"
      #include "bounds.cuh"
      extern "C" float widened(int code, unsigned bits) { return load(code, &bits, 0); }
      extern "C" unsigned narrowed(int code, float value) {
        unsigned bits = 0;
        store(code, &bits, 0, value);
        return bits;
      }
      extern "C" float roundedTo(int code, float value) { return rounded(code, value); }
      extern "C" int allowed(
          int code, int activation, float outScale, float expected, float low, float high,
          float found) {
        Bounds bounds = {expected, low, high};
        if (activation) bounds = activated(bounds);
        bounds = scaled(bounds, outScale);
        return allows(rounded(code, bounds), rounded(code, found));
      }
      extern "C" double beyond(int code, float expected, float found) {
        return unexplained(code, expected, found);
      }
      """;

  /// Lower halves of fp32 bits: at, next to and halfway between the values of narrower types.
  private static final int[] LOWER_HALVES = {
    0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff
  };

  /// Functions of the program.
  private record Compiled(
      MethodHandle widened,
      MethodHandle narrowed,
      MethodHandle rounded,
      MethodHandle allowed,
      MethodHandle beyond) {}

  private Optional<Compiled> compiled = Optional.empty();

  @BeforeAll
  @SuppressWarnings("restricted")
  void compile(@TempDir Path folder) throws Exception {
    for (var file : List.of("numbers.cuh", "bounds.cuh")) {
      Files.writeString(
          folder.resolve(file), Objects.requireNonNull(KernelSources.ours().included().get(file)));
    }
    var program = Files.writeString(folder.resolve("program.cpp"), PROGRAM);
    var library = folder.resolve("program.so");
    var log = folder.resolve("log");
    var command =
        List.of(
            "g++",
            "-O2",
            "-std=c++17",
            "-shared",
            "-fPIC",
            "-o",
            library.toString(),
            program.toString());
    try {
      int status =
          new ProcessBuilder(command)
              .redirectErrorStream(true)
              .redirectOutput(log.toFile())
              .start()
              .waitFor();
      assertThat(status).as(Files.readString(log)).isZero();
    } catch (IOException e) {
      assumeTrue(false, "no g++, so conversions are not compiled for the processor: " + e);
    }
    var symbols = SymbolLookup.libraryLookup(library, Arena.global());
    compiled =
        Optional.of(
            new Compiled(
                function(
                    symbols,
                    "widened",
                    FunctionDescriptor.of(
                        ValueLayout.JAVA_FLOAT, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT)),
                function(
                    symbols,
                    "narrowed",
                    FunctionDescriptor.of(
                        ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_FLOAT)),
                function(
                    symbols,
                    "roundedTo",
                    FunctionDescriptor.of(
                        ValueLayout.JAVA_FLOAT, ValueLayout.JAVA_INT, ValueLayout.JAVA_FLOAT)),
                function(
                    symbols,
                    "allowed",
                    FunctionDescriptor.of(
                        ValueLayout.JAVA_INT,
                        ValueLayout.JAVA_INT,
                        ValueLayout.JAVA_INT,
                        ValueLayout.JAVA_FLOAT,
                        ValueLayout.JAVA_FLOAT,
                        ValueLayout.JAVA_FLOAT,
                        ValueLayout.JAVA_FLOAT,
                        ValueLayout.JAVA_FLOAT)),
                function(
                    symbols,
                    "beyond",
                    FunctionDescriptor.of(
                        ValueLayout.JAVA_DOUBLE,
                        ValueLayout.JAVA_INT,
                        ValueLayout.JAVA_FLOAT,
                        ValueLayout.JAVA_FLOAT))));
  }

  @SuppressWarnings("restricted")
  private static MethodHandle function(
      SymbolLookup symbols, String name, FunctionDescriptor descriptor) {
    return Linker.nativeLinker().downcallHandle(symbols.findOrThrow(name), descriptor);
  }

  @ParameterizedTest
  @EnumSource(ElementType.class)
  void widenEveryPattern(ElementType type) throws Throwable {
    var widened = compiled.orElseThrow().widened();
    int mask = type.bytes() == Byte.BYTES ? 0xff : 0xffff;
    for (int bits = 0; bits < 1 << 16; bits++) {
      int pattern = type.bytes() == Float.BYTES ? bits << 16 : bits & mask;
      float is = (float) widened.invokeExact(type.code(), pattern);
      if (Float.compare(is, type.widen(pattern)) != 0) {
        assertThat(is).as("%s %x", type, pattern).isEqualTo(type.widen(pattern));
      }
    }
  }

  @ParameterizedTest
  @EnumSource(ElementType.class)
  void narrowToTheBit(ElementType type) throws Throwable {
    var narrowed = compiled.orElseThrow().narrowed();
    for (int upper = 0; upper < 1 << 16; upper++) {
      for (int lower : LOWER_HALVES) {
        float value = Float.intBitsToFloat((upper << 16) | lower);
        int bits = (int) narrowed.invokeExact(type.code(), value);
        // The payload of a NaN in fp16 depends on the processor; that it is a NaN does not.
        boolean same =
            Float.isNaN(value)
                ? Float.isNaN(type.widen(bits)) && sign(type, bits) == ((upper >>> 15) == 1)
                : bits == type.narrow(value);
        if (!same) {
          assertThat(bits).as("%s of %s", type, value).isEqualTo(type.narrow(value));
        }
      }
    }
  }

  private static boolean sign(ElementType type, int bits) {
    return ((bits >>> (8 * type.bytes() - 1)) & 1) == 1;
  }

  @Test
  void roundIsNarrowAndWiden() throws Throwable {
    var rounded = compiled.orElseThrow().rounded();
    for (var type : ElementType.values()) {
      for (float value : new float[] {0.1f, -3.3f, 1e-5f, 70_000, 500}) {
        assertThat((float) rounded.invokeExact(type.code(), value)).isEqualTo(type.round(value));
      }
    }
  }

  @Test
  void boundsAllowViewsWithinThem() throws Throwable {
    var allowed = compiled.orElseThrow().allowed();
    for (var each : BoundChecks.SINGLES) {
      int is =
          (int)
              allowed.invokeExact(
                  ElementType.FP16.code(),
                  each.activated() ? 1 : 0,
                  each.outScale(),
                  each.expected(),
                  each.low(),
                  each.high(),
                  each.got());
      assertThat(is == 1).as("%s", each).isEqualTo(each.right());
    }
  }

  @Test
  void halfAStepIsExplained() throws Throwable {
    var beyond = compiled.orElseThrow().beyond();
    assertThat((double) beyond.invokeExact(ElementType.BF16.code(), 1.5f, 1.515625f))
        .isEqualTo(0x1p-6 - 0x1p-8);
    assertThat((double) beyond.invokeExact(ElementType.FP16.code(), 0f, 0x1p-24f))
        .isEqualTo(0x1p-25);
    assertThat((double) beyond.invokeExact(ElementType.FP32.code(), 3f, 3f)).isZero();
    // A value beyond the range of fp8 is stored as the largest number.
    assertThat((double) beyond.invokeExact(ElementType.E4M3.code(), 1000f, 448f)).isZero();
    assertThat((double) beyond.invokeExact(ElementType.E5M2.code(), -1e9f, -57344f)).isZero();
    assertThat((double) beyond.invokeExact(ElementType.E4M3.code(), 1000f, 384f))
        .isEqualTo(64 - 16);
  }
}
