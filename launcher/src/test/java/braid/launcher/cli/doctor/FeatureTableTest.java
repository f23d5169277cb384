package braid.launcher.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import braid.launcher.machine.Gpus;
import braid.model.MemoryKind;
import braid.natives.load.Feature;
import braid.natives.nvml.GpuFacts;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class FeatureTableTest {
  private static FeatureTable of(Map<String, String> versions) {
    return new FeatureTable(component -> Optional.ofNullable(versions.get(component.title())));
  }

  private static FeatureTable old() {
    return of(
        Map.of(
            "a driver for CUDA", "13.1",
            "compute capability", "8.6",
            "cuBLASLt", "13.1.0",
            "NCCL", "2.27.7",
            "CUPTI", "12.8.0"));
  }

  @Test
  void aRefusedFeatureHasBothVersions() {
    assertThat(old().lines())
        .contains(
            "  ranks on GPUs, graphs         a driver for CUDA 13.0  13.1",
            "                                the CUDA runtime 13     –",
            "  GEMMs in fp8                  compute capability 8.9  8.6",
            "  NCCL: windows, copy engines   NCCL 2.28               2.27.7",
            "  memory native, host           –                       –       one host or more",
            "  memory nccl                   NCCL 2.28               2.27.7  one host",
            "  memory nvshmem                NVSHMEM 3               –       one host")
        .filteredOn(line -> line.contains("refused"))
        .containsExactly(
            "  refused: GEMMs in fp8 needs compute capability 8.9, found 8.6",
            "  refused: bulk copies by workers needs compute capability 9.0, found 8.6",
            "  refused: NCCL: windows, copy engines needs NCCL 2.28, found 2.27.7",
            "  refused: GPU times in profiles needs CUPTI 13.0, found 12.8.0",
            "  refused: memory nccl needs NCCL 2.28, found 2.27.7");
    assertThat(old().refusal(MemoryKind.NCCL)).contains("needs NCCL 2.28, found 2.27.7");
    assertThat(old().refusal(MemoryKind.NVSHMEM)).isEmpty();
  }

  @Test
  void everyFeatureAndKindHasARowThatFitsATerminal() {
    var lines = FeatureTable.of(Gpus.none("no GPU")).lines();
    assertThat(lines)
        .hasSize(2 + Feature.values().length + 5)
        .allMatch(line -> line.length() <= 80);
    for (var feature : Feature.values()) {
      assertThat(lines).anyMatch(line -> line.matches(".* %s +–.*".formatted(feature.needs())));
    }
    assertThat(lines).noneMatch(line -> line.contains("refused"));
  }

  @Test
  void theJsonHasTheSame() {
    var rows = old().json();
    assertThat(rows).hasSize(Feature.values().length + 5);
    var nccl = row(rows, "memory nccl");
    assertThat(nccl.get("component").getAsString()).isEqualTo("NCCL");
    assertThat(nccl.get("minimum").getAsString()).isEqualTo("2.28");
    assertThat(nccl.get("found").getAsString()).isEqualTo("2.27.7");
    assertThat(nccl.get("refused").getAsString()).isEqualTo("needs NCCL 2.28, found 2.27.7");
    assertThat(nccl.get("spans").getAsString()).isEqualTo("one host");
    var batches = row(rows, "copies in batches");
    assertThat(batches.get("refused").isJsonNull()).isTrue();
    assertThat(batches.get("spans").isJsonNull()).isTrue();
  }

  private static JsonObject row(JsonArray rows, String feature) {
    return rows.asList().stream()
        .map(row -> row.getAsJsonObject())
        .filter(row -> row.get("feature").getAsString().equals(feature))
        .findFirst()
        .orElseThrow();
  }

  @Test
  void theOldestGpuAndTheDriverDecide() {
    var gpus = new Gpus(List.of(gpu(9, 0), gpu(8, 9), gpu(12, 0)), "", "580.95.05, CUDA 13.0");
    assertThat(gpus.capability()).contains("8.9");
    assertThat(gpus.cuda()).contains("13.0");
    assertThat(Gpus.none("none").capability()).isEmpty();
    assertThat(Gpus.none("none").cuda()).isEmpty();
  }

  private static GpuFacts gpu(int major, int minor) {
    return new GpuFacts(0, "GPU", "GPU-0", 1L << 30, 1L << 30, major, minor, 0);
  }
}
