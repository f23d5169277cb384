package braid.export;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.export.CollectiveTime.Algorithm;
import braid.export.CollectiveTime.Protocol;
import braid.model.BraidException;
import braid.model.Collective;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

class NcclTunerExportTest {
  /// The grammar of the reader, which takes an unknown collective for an all-reduce, an unknown
  /// algorithm for a ring and an unknown protocol for simple.
  private static final Pattern ROW =
      Pattern.compile(
          "(broadcast|reduce|allgather|reducescatter|allreduce),(\\d+),(\\d+),"
              + "(tree|ring|collnet_direct|collnet_chain|nvls|nvls_tree|pat),(ll|ll128|simple),"
              + "(-1|\\d+),(-1|\\d+),(-1|\\d+),(-1|\\d+),(-1|0|1)");

  /// The buffer of the reader has 256 characters, with the end of the line.
  private static final int MOST_CHARACTERS = 254;

  private static CollectiveTime time(
      Collective collective, long bytes, Algorithm algorithm, Protocol protocol, double micros) {
    return new CollectiveTime(
        collective, bytes, 1, 8, algorithm, protocol, 16, micros * 1e3, MegatronExportTest.MACHINE);
  }

  private static List<CollectiveTime> times() {
    var times = new ArrayList<CollectiveTime>();
    for (long bytes = 1 << 10; bytes <= 1 << 26; bytes <<= 4) {
      double scale = bytes / 1024.0;
      times.add(time(Collective.ALL_REDUCE, bytes, Algorithm.RING, Protocol.LL, 10 + scale));
      times.add(
          time(Collective.ALL_REDUCE, bytes, Algorithm.NVLS, Protocol.SIMPLE, 30 + scale / 9));
      times.add(time(Collective.ALL_GATHER, bytes, Algorithm.RING, Protocol.SIMPLE, 20 + scale));
    }
    return times;
  }

  private static List<String> rows(Export export) {
    var lines = export.text().lines().toList();
    assertThat(lines).allMatch(line -> line.length() <= MOST_CHARACTERS);
    return lines.stream().filter(line -> !line.startsWith("#") && !line.isEmpty()).toList();
  }

  @Test
  void everyRangeHasItsFastestChoice() {
    var export = NcclTunerExport.csv(times(), 0);
    assertThat(rows(export))
        .allMatch(row -> ROW.matcher(row).matches())
        .containsExactly(
            "allgather,1024,67108864,ring,simple,16,1,8,-1,-1",
            "allreduce,1024,262143,ring,ll,16,1,8,-1,-1",
            "allreduce,262144,67108864,nvls,simple,16,1,8,-1,-1");
    assertThat(export.text())
        .startsWith("# measured with Braid 0.1.0 on 4 x NVIDIA H200, NVLink 4, driver 580.82,");
  }

  /// Reads the file as the tuner does: the first row that matches.
  @Test
  void everyMeasuredSizeFindsItsFastestChoice() {
    var rows = rows(NcclTunerExport.csv(times(), 0));
    for (var time : times()) {
      var name = time.collective().toString().replace("-", "");
      var found =
          rows.stream()
              .map(row -> List.of(row.split(",")))
              .filter(
                  row ->
                      row.get(0).equals(name)
                          && Long.parseLong(row.get(1)) <= time.bytes()
                          && time.bytes() <= Long.parseLong(row.get(2)))
              .toList();
      assertThat(found).hasSize(1);
      double fastest =
          times().stream()
              .filter(
                  each -> each.collective() == time.collective() && each.bytes() == time.bytes())
              .mapToDouble(CollectiveTime::medianNanos)
              .min()
              .orElseThrow();
      if (time.medianNanos() == fastest) {
        assertThat(found.getFirst().get(3)).isEqualTo(time.algorithm().toString());
      }
    }
  }

  @Test
  void aChoiceIsKeptWithinTheNoise() {
    var times =
        List.of(
            time(Collective.BROADCAST, 1024, Algorithm.RING, Protocol.LL, 10),
            time(Collective.BROADCAST, 1024, Algorithm.RING, Protocol.SIMPLE, 12),
            time(Collective.BROADCAST, 4096, Algorithm.RING, Protocol.LL, 10.4),
            time(Collective.BROADCAST, 4096, Algorithm.RING, Protocol.SIMPLE, 10));
    assertThat(rows(NcclTunerExport.csv(times, 0.05)))
        .containsExactly("broadcast,1024,4096,ring,ll,16,1,8,-1,-1");
    assertThat(rows(NcclTunerExport.csv(times, 0.03)))
        .containsExactly(
            "broadcast,1024,4095,ring,ll,16,1,8,-1,-1",
            "broadcast,4096,4096,ring,simple,16,1,8,-1,-1");
  }

  @Test
  void whatNcclNeverRunsIsRefused() {
    refuses(Collective.ALL_TO_ALL, Algorithm.RING, Protocol.LL, "all-to-all must be one of [] but");
    refuses(
        Collective.ALL_GATHER, Algorithm.TREE, Protocol.LL, "[ring, collnet_direct, nvls, pat]");
    refuses(Collective.ALL_REDUCE, Algorithm.PAT, Protocol.SIMPLE, "but was pat; leave that time");
    refuses(
        Collective.ALL_REDUCE, Algorithm.NVLS, Protocol.LL128, "nvls must be simple but was ll");
    assertThatThrownBy(() -> time(Collective.ALL_REDUCE, 0, Algorithm.RING, Protocol.LL, 1))
        .hasMessageContaining("bytes of a collective must be 1..");
    assertThatThrownBy(() -> time(Collective.ALL_REDUCE, 8, Algorithm.RING, Protocol.LL, -1))
        .hasMessageContaining("must be more than 0 ns and finite but was -1000.0;");
    assertThatThrownBy(() -> NcclTunerExport.csv(times(), 1))
        .hasMessageContaining("noise must be a share of 0 or more and less than 1 but was 1.0;");
    assertThatThrownBy(() -> NcclTunerExport.csv(List.of(), 0)).hasMessageContaining("has none");
  }

  private static void refuses(
      Collective collective, Algorithm algorithm, Protocol protocol, String message) {
    assertThatThrownBy(() -> time(collective, 1024, algorithm, protocol, 1))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining(message)
        .message()
        .hasLineCount(1);
  }
}
