package braid.launcher.ranks;

import java.io.IOException;
import java.util.List;

/// Starts ranks on this host, as children of this process.
public final class LocalRanks implements RankStarter {
  public static final LocalRanks HERE = new LocalRanks();

  private LocalRanks() {}

  @Override
  public void prepare(int count) {}

  @Override
  public Process start(Start start, int rank) throws IOException {
    var builder = new ProcessBuilder(RankJvm.command(start.kind(), start.frontPort()));
    var env = builder.environment();
    env.putAll(start.environment());
    env.put("RANK", Integer.toString(rank));
    env.put("LOCAL_RANK", Integer.toString(rank));
    env.put("WORLD_SIZE", Integer.toString(start.count()));
    env.put("LOCAL_WORLD_SIZE", Integer.toString(start.count()));
    env.put("BRAID_TOKEN", start.token());
    return builder.start();
  }

  @Override
  public String description() {
    return "local";
  }

  @Override
  public List<String> options() {
    return List.of();
  }
}
