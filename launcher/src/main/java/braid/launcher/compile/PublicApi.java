package braid.launcher.compile;

import java.lang.reflect.Executable;
import java.lang.reflect.Member;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Stream;

/// Public classes and members that a session's imports make usable, by reflection.
final class PublicApi {
  /// A member or a type, as a cell writes it: `GemmSpec.allGatherGemm`, or `BF16` if it is imported
  /// statically.
  ///
  /// @param simple its own name, which a mistyped one is compared with
  record Name(String simple, String written) {}

  private static final String ALL = ".*";

  private final List<Class<?>> classes;
  private final List<Class<?>> importedStatically;

  /// @param imports full names of imports that are not static: classes, or packages with `.*`
  /// @param staticImports full names of static imports
  /// @param classesOf returns the binary names of the classes of a package
  PublicApi(
      Collection<String> imports,
      Collection<String> staticImports,
      Function<String, List<String>> classesOf) {
    classes =
        imports.stream()
            .flatMap(
                name ->
                    name.endsWith(ALL)
                        ? classesOf.apply(withoutEnd(name)).stream()
                        : Stream.of(name))
            .flatMap(name -> load(name).stream())
            .filter(PublicApi::isPublic)
            .distinct()
            .toList();
    importedStatically =
        staticImports.stream()
            .filter(name -> name.endsWith(ALL))
            .map(PublicApi::withoutEnd)
            .flatMap(name -> load(name).stream())
            .distinct()
            .toList();
  }

  private static String withoutEnd(String name) {
    return name.substring(0, name.lastIndexOf('.'));
  }

  /// Returns the class of a name as the compiler prints it; nested classes follow a dot.
  static Optional<Class<?>> load(String name) {
    for (var binary = name; ; ) {
      try {
        return Optional.of(Class.forName(binary, false, PublicApi.class.getClassLoader()));
      } catch (ClassNotFoundException e) {
        int dot = binary.lastIndexOf('.');
        if (dot < 0) {
          return Optional.empty();
        }
        binary = binary.substring(0, dot) + "$" + binary.substring(dot + 1);
      }
    }
  }

  private static boolean isPublic(Class<?> type) {
    for (Class<?> each = type; each != null; each = each.getEnclosingClass()) {
      if (!Modifier.isPublic(each.getModifiers())) {
        return false;
      }
    }
    return true;
  }

  Optional<Class<?>> type(String simpleName) {
    return classes.stream().filter(type -> written(type).equals(simpleName)).findFirst();
  }

  List<Name> types() {
    return classes.stream().map(type -> new Name(type.getSimpleName(), written(type))).toList();
  }

  /// Returns static fields, which include the constants of enums.
  List<Name> constants() {
    return statics(type -> Arrays.stream(type.getFields()));
  }

  /// Returns static methods.
  List<Name> functions() {
    return statics(type -> Arrays.stream(type.getMethods()));
  }

  private List<Name> statics(Function<Class<?>, Stream<? extends Member>> members) {
    var names = new ArrayList<Name>();
    for (var type : importedStatically) {
      members
          .apply(type)
          .filter(PublicApi::isStatic)
          .forEach(member -> names.add(new Name(member.getName(), member.getName())));
    }
    for (var type : classes) {
      members
          .apply(type)
          .filter(PublicApi::isStatic)
          .filter(member -> !importedStatically.contains(type))
          .forEach(member -> names.add(qualified(type, member)));
    }
    return names.stream().distinct().toList();
  }

  /// Returns a class's members that may be meant by a mistyped one: static ones with its name.
  ///
  /// @param kind kind of the mistyped one: `variable`, `method` or `class`
  static List<Name> members(Class<?> type, String kind) {
    var members = new ArrayList<Name>();
    boolean isCall = kind.equals("method");
    for (var method : type.getMethods()) {
      var name = member(type, method);
      members.add(isCall ? name : new Name(name.simple(), name.written() + "()"));
    }
    if (!isCall) {
      for (var field : type.getFields()) {
        members.add(member(type, field));
      }
      for (var nested : type.getClasses()) {
        members.add(new Name(nested.getSimpleName(), written(nested)));
      }
    }
    return members.stream().distinct().toList();
  }

  private static Name member(Class<?> type, Member member) {
    return isStatic(member)
        ? qualified(type, member)
        : new Name(member.getName(), member.getName());
  }

  private static Name qualified(Class<?> type, Member member) {
    return new Name(member.getName(), written(type) + "." + member.getName());
  }

  private static boolean isStatic(Member member) {
    return Modifier.isStatic(member.getModifiers());
  }

  /// Returns the name with those of enclosing classes, without the package.
  private static String written(Class<?> type) {
    var enclosing = type.getEnclosingClass();
    return (enclosing == null ? "" : written(enclosing) + ".") + type.getSimpleName();
  }

  /// Returns true if a cell cannot call any constructor.
  static boolean hasNoConstructor(Class<?> type) {
    return !type.isInterface() && type.getConstructors().length == 0;
  }

  /// Returns calls of the type's static factories, and of those of its builder.
  ///
  /// @param argument returns a value to show for a parameter of a type
  static List<String> factories(Class<?> type, Function<Class<?>, Optional<String>> argument) {
    return Arrays.stream(type.getMethods())
        .filter(PublicApi::isStatic)
        .filter(
            method ->
                method.getReturnType() == type
                    || method.getReturnType().getEnclosingClass() == type)
        .map(method -> call(type, method, argument))
        .distinct()
        .sorted()
        .toList();
  }

  /// Returns methods of other types that return a value of the type, the shortest first.
  List<String> sources(Class<?> type) {
    return classes.stream()
        .filter(other -> other != type)
        .flatMap(
            other ->
                Arrays.stream(other.getDeclaredMethods())
                    .filter(method -> Modifier.isPublic(method.getModifiers()))
                    .filter(method -> method.getReturnType() == type)
                    .map(method -> call(other, method, _ -> Optional.empty())))
        .distinct()
        .sorted(Comparator.comparingInt(String::length).thenComparing(Comparator.naturalOrder()))
        .toList();
  }

  private static String call(
      Class<?> type, Method method, Function<Class<?>, Optional<String>> argument) {
    return written(type) + "." + method.getName() + "(" + arguments(method, argument) + ")";
  }

  private static String arguments(
      Executable method, Function<Class<?>, Optional<String>> argument) {
    var values = Arrays.stream(method.getParameterTypes()).map(argument).toList();
    if (values.stream().anyMatch(Optional::isEmpty)) {
      return "…";
    }
    return String.join(", ", values.stream().map(Optional::orElseThrow).toList());
  }
}
