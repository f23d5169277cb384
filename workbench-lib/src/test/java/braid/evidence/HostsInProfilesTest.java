package braid.evidence;

import static org.assertj.core.api.Assertions.assertThat;

import braid.internal.report.chart.ChartImage;
import braid.internal.report.json.ProfileJson;
import braid.model.Place;
import braid.model.Profile;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import tech.tablesaw.api.Table;

/// Profiles of ranks on several hosts.
@Tag("F8")
class HostsInProfilesTest {
  private static final SyntheticProfiles ONE = new SyntheticProfiles(4, 3, 4, 2, 1_000, 1_000);

  /// Ranks 0 and 1 are alike, and 2 and 3, which are slower, and so on.
  private static ProfileSet on(List<String> hosts) {
    return on(hosts, 2);
  }

  /// @param alike number of consecutive ranks that have the same times
  private static ProfileSet on(List<String> hosts, int alike) {
    return ProfileSet.of(
        IntStream.range(0, hosts.size())
            .mapToObj(
                rank ->
                    profile(
                        hosts.get(rank), new Place(rank, hosts.size()), ONE.profile(rank / alike)))
            .toList());
  }

  private static Profile profile(String host, Place place, Profile times) {
    return new Profile(
        place,
        times.configuration(),
        times.iterationNanos(),
        times.spans(),
        0,
        counters(times.place().rank()),
        List.of(),
        List.of(),
        List.of(),
        Optional.empty(),
        Optional.of(host));
  }

  private static SequencedMap<String, Long> counters(long count) {
    var counters = new LinkedHashMap<String, Long>();
    counters.put("rendezvous", count);
    return counters;
  }

  private static List<String> hosts(Table table) {
    return table.stringColumn("host").asList();
  }

  @Test
  void tablesHaveTheHostOfEachRank() {
    var set = on(List.of("h1", "h1", "h2", "h2"));
    assertThat(set.stages().columnNames()).startsWith("rank", "host", "iteration ms");
    assertThat(hosts(set.stages())).containsExactly("h1", "h1", "h2", "h2");
    assertThat(set.table().columnNames()).startsWith("rank", "host", "iteration");
    assertThat(hosts(set.table()).getFirst()).isEqualTo("h1");
    assertThat(hosts(set.table()).getLast()).isEqualTo("h2");
    assertThat(set.engines().columnNames()).startsWith("rank");
  }

  @Test
  void rowsOfSeveralRanksListTheirHosts() {
    var set = on(List.of("h1", "h1", "h1", "h2"));
    assertThat(set.overview().stringColumn("rank").asList()).containsExactly("0, 1", "2, 3");
    assertThat(hosts(set.overview())).containsExactly("h1", "h1, h2");
    assertThat(set.counters().columnNames()).containsExactly("rank", "host", "rendezvous");
    assertThat(hosts(set.counters())).containsExactly("h1", "h1, h2");
  }

  @Test
  void rowsOfManyHostsCountThem() {
    var set = on(List.of("a", "b", "c", "d", "e"), 5);
    assertThat(hosts(set.overview())).containsExactly("5 hosts");
  }

  @Test
  void chartsAndTracesNameTheHostOfEachRank() {
    var set = on(List.of("h1", "h1", "h2", "h2"));
    assertThat(ChartImage.svg(set.timeline()))
        .contains("rank 1 on h1  compute 0", "rank 2 on h2  compute 0");
    assertThat(ChartImage.svg(set.breakdown())).contains(">rank 3 on h2<");
    assertThat(set.chromeTrace()).contains("\"rank 3 on h2\"");
  }

  @Test
  void ranksOfOneHostHaveNoneInTables() {
    var set = ONE.set();
    assertThat(set.stages().columnNames()).doesNotContain("host");
    assertThat(set.overview().columnNames()).doesNotContain("host");
    assertThat(ChartImage.svg(set.breakdown())).contains(">rank 3<");
    assertThat(set.profiles().getFirst().toJson()).doesNotContain("\"host\"");
  }

  @Test
  void aSavedProfileKeepsItsHost() {
    var set = on(List.of("h1", "h1", "h2", "h2"));
    var saved = ProfileJson.readAll(ProfileJson.writeAll(set.profiles()));
    assertThat(saved).isEqualTo(set.profiles());
    assertThat(saved.getLast().host()).contains("h2");
  }
}
