package braid.natives.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.natives.cuda.GpuError;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class KernelCompilerTest {
  @ParameterizedTest
  @ValueSource(ints = {80, 90, 100})
  void compilesEveryKernelForEveryArchitecture(int number) {
    var compiler = Nvrtc.orSkip();
    var image = compiler.compile(KernelSources.ours(), KernelCompiler.architecture(number));
    assertThat(image).startsWith(0x7f, 'E', 'L', 'F');
    var text = new String(image, StandardCharsets.ISO_8859_1);
    Kernels.names(number >= 90).forEach(name -> assertThat(text).contains("braid_" + name + "\0"));
    assertThat(text.contains("braid_copy_tma\0")).isEqualTo(number >= 90);
  }

  @ParameterizedTest
  @ValueSource(ints = {80, 90, 100})
  void compilesTheKernelsOfAttentionForEveryArchitecture(int number) {
    var compiler = Nvrtc.orSkip();
    var image = compiler.compile(KernelSources.attention(), KernelCompiler.architecture(number));
    var text = new String(image, StandardCharsets.ISO_8859_1);
    AttentionKernels.names().forEach(name -> assertThat(text).contains("braid_" + name + "\0"));
  }

  @Test
  void anErrorShowsTheCompilersLog() {
    var compiler = Nvrtc.orSkip();
    var included = new LinkedHashMap<String, String>();
    included.put("part.cuh", "\n__device__ int f() { return nothing; }\n");
    var wrong = new KernelSources("whole.cu", "#include \"part.cuh\"\n", included);
    assertThatThrownBy(() -> compiler.compile(wrong, "sm_90a"))
        .isInstanceOf(GpuError.class)
        .hasMessageContaining("nvrtcCompileProgram")
        .hasMessageContaining("NVRTC_ERROR_COMPILATION")
        .hasMessageContaining("part.cuh(2)")
        .hasMessageContaining("\"nothing\" is undefined")
        .hasMessageContaining("sm_90a");
  }

  @Test
  void theCompilerHasAVersion() {
    assertThat(Nvrtc.orSkip().version()).matches("\\d+\\.\\d+");
  }

  @Test
  void architecturesAreNamed() {
    assertThat(KernelCompiler.architecture(80)).isEqualTo("sm_80");
    assertThat(KernelCompiler.architecture(89)).isEqualTo("sm_89");
    assertThat(KernelCompiler.architecture(90)).isEqualTo("sm_90a");
    assertThat(KernelCompiler.architecture(100)).isEqualTo("sm_100a");
    assertThatThrownBy(() -> KernelCompiler.architecture(75))
        .hasMessage(
            "sums, worker copies, signals: needs compute capability 8.0, found 7.5; use a newer GPU");
  }
}
