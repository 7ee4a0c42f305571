package kotlin;

/** Stands in for Kotlin's return type: the class is recognised by its name. */
public final class Unit {
    private Unit() {}
}
