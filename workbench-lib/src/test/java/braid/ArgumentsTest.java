package braid;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.AttentionSpec;
import braid.model.BraidException;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Link;
import braid.model.Overlap;
import braid.model.Place;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/// Calls the public API with nulls and with numbers at the ends of their ranges.
class ArgumentsTest {
  private static final long[] NUMBERS = {
    Long.MIN_VALUE, -1, 0, 1, Integer.MAX_VALUE, 1L << 62, Long.MAX_VALUE
  };

  private static final List<Class<?>> NULLS_REFUSED =
      List.of(
          Pipeline.class,
          Pipeline.class,
          Capabilities.class,
          Chain.class,
          Collectives.class,
          Display.class,
          LocalRanks.class,
          LocalTensor.class,
          Pipeline.class,
          ProcessGroup.class,
          SymmetricTensor.class,
          Tuner.class);

  /// Their second call would measure, or end the group.
  private static final Set<String> LEFT_OUT = Set.of("profile", "close", "equals");

  private static List<Method> methods(Class<?> type, boolean ofClass) {
    return Arrays.stream(type.getMethods())
        .filter(method -> method.getDeclaringClass().getName().startsWith("braid."))
        .filter(method -> Modifier.isStatic(method.getModifiers()) == ofClass)
        .filter(method -> !method.isSynthetic() && !LEFT_OUT.contains(method.getName()))
        .toList();
  }

  private static Object number(Class<?> type, long value) {
    return switch (type.getName()) {
      case "int" -> (Object) Math.clamp(value, Integer.MIN_VALUE, Integer.MAX_VALUE);
      case "float" -> (Object) (float) value;
      case "double" -> (Object) (double) value;
      case "[J" -> new long[] {value, value};
      default -> (Object) value;
    };
  }

  /// Calls a method and returns what it threw that is not a refusal.
  private static @Nullable String failure(
      Method method, @Nullable Object owner, Object... arguments) throws IllegalAccessException {
    try {
      method.setAccessible(true);
      var _ = String.valueOf(method.invoke(owner, arguments));
      return null;
    } catch (InvocationTargetException e) {
      return e.getCause() instanceof BraidException
          ? null
          : "%s%s: %s".formatted(method, Arrays.deepToString(arguments), e.getCause());
    }
  }

  private static List<String> refused(Class<?> type, @Nullable Object owner)
      throws IllegalAccessException {
    var wrong = new ArrayList<String>();
    for (var method : methods(type, owner == null)) {
      var types = method.getParameterTypes();
      if (Arrays.stream(types).allMatch(each -> each.isPrimitive() || each == Object.class)) {
        continue;
      }
      var arguments =
          Arrays.stream(types).map(each -> each.isPrimitive() ? number(each, 1) : null).toArray();
      try {
        method.setAccessible(true);
        method.invoke(owner, arguments);
        wrong.add(method + " took a null");
      } catch (InvocationTargetException e) {
        if (!(e.getCause() instanceof BraidException refusal)
            || !String.valueOf(refusal.getMessage()).matches("\\w+ must be given but was null")) {
          wrong.add(method + ": " + e.getCause());
        }
      }
    }
    return wrong;
  }

  @Test
  void everyNullIsRefusedByName() throws Exception {
    for (var type : NULLS_REFUSED) {
      assertThat(refused(type, null)).isEmpty();
    }
    LocalRanks.run(
        1,
        world -> {
          var tensor = SymmetricTensor.on(world).shape(4, 4).allocate();
          for (var each :
              List.of(
                  world,
                  Collectives.on(world),
                  Tuner.on(world),
                  Pipeline.on(world),
                  Pipeline.on(world),
                  SymmetricTensor.on(world),
                  LocalTensor.on(world),
                  tensor,
                  tensor.local())) {
            assertThat(refused(each.getClass(), each)).isEmpty();
          }
        });
  }

  private static List<String> failures(Class<?> type, @Nullable Object owner)
      throws IllegalAccessException {
    var wrong = new ArrayList<String>();
    for (var method : methods(type, owner == null)) {
      var types = method.getParameterTypes();
      if (types.length == 0
          || !Arrays.stream(types)
              .allMatch(each -> each == long[].class || each == int.class || isWide(each))) {
        continue;
      }
      int varied = Math.min(types.length, 4);
      for (int round = 0; round < Math.pow(NUMBERS.length, varied); round++) {
        int rest = round;
        var arguments = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
          arguments[i] = number(types[i], i < varied ? NUMBERS[rest % NUMBERS.length] : 1);
          rest /= NUMBERS.length;
        }
        var failure = failure(method, owner, arguments);
        if (failure != null) {
          wrong.add(failure);
        }
      }
    }
    return wrong;
  }

  private static boolean isWide(Class<?> type) {
    return type == long.class || type == float.class || type == double.class;
  }

  @Test
  void numbersAtTheEndsOfTheirRangesAreTakenOrRefused() throws Exception {
    for (var type :
        List.of(
            GemmSpec.class,
            AttentionSpec.class,
            Overlap.class,
            ContextParallel.class,
            Place.class)) {
      assertThat(failures(type, null)).isEmpty();
    }
    assertThat(failures(GemmSpec.class, GemmSpec.allGatherGemm(64, 64, 64))).isEmpty();
    assertThat(failures(Overlap.class, Overlap.pipelined(2))).isEmpty();
    for (var dtype : DType.values()) {
      assertThat(failures(DType.class, dtype)).isEmpty();
    }
    LocalRanks.run(
        1,
        world -> {
          var tensor = SymmetricTensor.on(world).shape(4, 4).allocate();
          for (var each :
              List.of(
                  world,
                  Collectives.on(world),
                  Tuner.on(world),
                  SymmetricTensor.on(world),
                  LocalTensor.on(world),
                  tensor,
                  tensor.local())) {
            assertThat(failures(each.getClass(), each)).isEmpty();
          }
        });
  }

  @Test
  void aLinkNeverTakesNegativeTime() throws Exception {
    for (var link :
        List.of(Link.DEFAULT, Link.UNLIMITED, new Link(1e-300, Long.MAX_VALUE), new Link(1, 5))) {
      assertThat(failures(Link.class, link)).isEmpty();
      assertThat(link.nanos(Long.MAX_VALUE)).isNotNegative();
    }
    assertThat(new Link(1, 5).nanos(Long.MAX_VALUE)).isEqualTo(Long.MAX_VALUE);
    assertThat(new Link(1e9, 5).nanos(10)).isEqualTo(15);
  }
}
