package braid.launcher.compile;

import java.util.List;

/// Text that may stand between `start` and `end` of the source instead of what stands there.
public record Completions(List<String> replacements, int start, int end) {}
