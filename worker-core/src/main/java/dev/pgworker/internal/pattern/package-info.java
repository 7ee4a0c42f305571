/** The minutes that the five fields of a crontab name. */
@NullMarked
package dev.pgworker.internal.pattern;

import org.jspecify.annotations.NullMarked;
