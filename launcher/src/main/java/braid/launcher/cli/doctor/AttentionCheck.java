package braid.launcher.cli.doctor;

import braid.internal.rank.AttentionEngine;
import braid.launcher.cli.home.Env;
import braid.launcher.machine.Gpus;
import braid.model.BraidException;
import braid.natives.load.Feature;
import braid.natives.load.FoundLibrary;
import braid.natives.load.Libraries;
import braid.natives.load.Libraries.Library;
import java.util.Optional;

/// Check of the code that computes attention on GPUs.
final class AttentionCheck {
  private static final String ID = "attention";

  private AttentionCheck() {}

  static Check of(Env env, Gpus gpus) {
    if (gpus.count() == 0) {
      return Check.absent(ID, ID, "not checked: no GPU");
    }
    return of(
        env.attention().orElse(AttentionEngine.AUTO.toString()),
        () -> Libraries.find(Library.CUDNN).map(FoundLibrary::version));
  }

  /// A version that is looked up only if it matters: loading cuDNN takes a second.
  interface Version {
    /// Empty if cuDNN is not available.
    Optional<String> find();
  }

  static Check of(String requested, Version cudnn) {
    AttentionEngine engine;
    try {
      engine = AttentionEngine.parse(requested);
    } catch (BraidException e) {
      return Check.missing(
          ID, ID, String.valueOf(e.getMessage()), "unset BRAID_ATTENTION=" + requested);
    }
    if (engine == AttentionEngine.OWN) {
      return Check.ok(ID, ID, "by Braid's kernels, as BRAID_ATTENTION is own");
    }
    var version = cudnn.find();
    var refusal =
        version.isEmpty()
            ? Optional.of("cuDNN is not available")
            : Feature.ATTENTION.refusal(version.get());
    if (refusal.isEmpty()) {
      var library = "by cuDNN " + version.get();
      var backward = Feature.ATTENTION_BACKWARD.refusal(version.get());
      return Check.ok(
          ID,
          ID,
          engine == AttentionEngine.CUDNN
              ? library
                  + " alone, as BRAID_ATTENTION is cudnn"
                  + backward.map("; no backward pass: it "::concat).orElse("")
              : library
                  + " where it can, else by Braid's kernels"
                  + backward.map("; backward by Braid's kernels: cuDNN's "::concat).orElse(""));
    }
    return engine == AttentionEngine.CUDNN
        ? Check.missing(
            ID, ID, "BRAID_ATTENTION is cudnn but " + refusal.get(), "unset BRAID_ATTENTION")
        : Check.ok(ID, ID, "by Braid's kernels, much slower than cuDNN: " + refusal.get());
  }
}
