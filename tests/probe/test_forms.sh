#!/bin/sh
# Every form of memory operand, as tests/thread asks it of DynamoRIO.
# ctest: release only
RACE_ENGINE=probe exec "$RACE_SOURCE/tests/thread/test_forms.sh"
