package braid.launcher.ranks;

import java.util.List;

/// How a rank's JVM is started: small and quick, because there are many of them and they mostly
/// wait for native code.
final class RankJvm {
  static final List<String> FLAGS =
      List.of(
          "-XX:+UseSerialGC",
          "-XX:TieredStopAtLevel=1",
          "-XX:-UsePerfData",
          "-Xshare:auto",
          "-Djava.awt.headless=true",
          "--enable-native-access=ALL-UNNAMED");

  private RankJvm() {}
}
