/** An application that runs jobs which are added with SQL and by Node.js. */
@NullMarked
package dev.pgworker.samples.sqlandnode;

import org.jspecify.annotations.NullMarked;
