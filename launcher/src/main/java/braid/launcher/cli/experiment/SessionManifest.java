package braid.launcher.cli.experiment;

import braid.launcher.cli.home.Env;
import braid.launcher.cli.run.RunFacts;
import braid.launcher.experiment.Experiment;
import braid.launcher.session.SessionOptions;
import java.util.List;

/// The manifest of a session in Jupyter. A kernel knows neither its notebook nor parameters, so the
/// session cannot be rerun; its measurements can still be trusted and compared.
public final class SessionManifest {
  private SessionManifest() {}

  public static Experiment of(SessionOptions options, Env env) {
    return new Experiment(
        options.home().resolve("runs"),
        _ ->
            new RunFacts(List.of("kernel", "start"), options.home())
                .git(options.home())
                .of(options, env));
  }
}
