package braid.internal.remote;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/// Hosts of ranks, from their identities.
class HostsTest {
  @Test
  void ranksOfOneNameAndDifferentMemoryAreOnTwoHosts() {
    var hosts =
        Hosts.of(
            List.of(
                new HostIdentity("node", "kernel 25"),
                new HostIdentity("node", "kernel 31"),
                new HostIdentity("node", "kernel 25")));
    assertThat(hosts.names()).containsExactly("node", "node-2");
    assertThat(hosts.numbers()).containsExactly(0, 1, 0);
  }

  @Test
  void ranksOfDifferentNamesAndOneMemoryAreOnTwoHosts() {
    var here = HostIdentity.ofThisProcess(Optional.of("a"));
    assertThat(here.shared()).as("kernel and file system of /dev/shm").isNotEmpty();
    assertThat(here).isEqualTo(HostIdentity.parse(here.text()));
    assertThat(Hosts.of(List.of(here, HostIdentity.ofThisProcess(Optional.of("b")))).names())
        .containsExactly("a", "b");
  }
}
