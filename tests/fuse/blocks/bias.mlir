module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x256x4x16xbf16>, %arg1: tensor<2x256x4x16xbf16>, %arg2: tensor<2x256x4x16xbf16>, %arg3: tensor<1x4x256x256xbf16>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<2x256x4x16xbf16> {jax.result_info = "result[1]"}, tensor<2x256x4x16xbf16> {jax.result_info = "result[2]"}, tensor<2x256x4x16xbf16> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.reshape %arg0 : (tensor<2x256x4x16xbf16>) -> tensor<2x256x4x1x16xbf16>
    %1 = stablehlo.reshape %arg3 : (tensor<1x4x256x256xbf16>) -> tensor<1x4x1x256x256xbf16>
    %2 = stablehlo.dot_general %0, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x256x4x1x16xbf16>, tensor<2x256x4x16xbf16>) -> tensor<2x4x256x1x256xf32>
    %cst = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x4x256x1x256xf32>
    %4 = stablehlo.multiply %2, %3 : tensor<2x4x256x1x256xf32>
    %5 = stablehlo.convert %1 : (tensor<1x4x1x256x256xbf16>) -> tensor<1x4x1x256x256xf32>
    %6 = stablehlo.transpose %4, dims = [3, 0, 1, 2, 4] : (tensor<2x4x256x1x256xf32>) -> tensor<1x2x4x256x256xf32>
    %7 = stablehlo.transpose %5, dims = [2, 0, 1, 3, 4] : (tensor<1x4x1x256x256xf32>) -> tensor<1x1x4x256x256xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2, 3, 4] : (tensor<1x1x4x256x256xf32>) -> tensor<1x2x4x256x256xf32>
    %9 = stablehlo.add %6, %8 : tensor<1x2x4x256x256xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %10 = stablehlo.reduce(%9 init: %cst_0) applies stablehlo.maximum across dimensions = [4] : (tensor<1x2x4x256x256xf32>, tensor<f32>) -> tensor<1x2x4x256xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x2x4x256xf32>
    %12 = stablehlo.maximum %11, %10 : tensor<1x2x4x256xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2, 3] : (tensor<1x2x4x256xf32>) -> tensor<1x2x4x256x1xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x256x1xf32>) -> tensor<1x2x4x256x256xf32>
    %15 = stablehlo.subtract %9, %14 : tensor<1x2x4x256x256xf32>
    %16 = stablehlo.exponential %15 : tensor<1x2x4x256x256xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %17 = stablehlo.reduce(%16 init: %cst_2) applies stablehlo.add across dimensions = [4] : (tensor<1x2x4x256x256xf32>, tensor<f32>) -> tensor<1x2x4x256xf32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [0, 1, 2, 3] : (tensor<1x2x4x256xf32>) -> tensor<1x2x4x256x1xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x256x1xf32>) -> tensor<1x2x4x256x256xf32>
    %20 = stablehlo.divide %16, %19 : tensor<1x2x4x256x256xf32>
    %21 = stablehlo.multiply %18, %18 : tensor<1x2x4x256x1xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x2x4x256x1xf32>
    %23 = stablehlo.divide %22, %21 : tensor<1x2x4x256x1xf32>
    %24 = stablehlo.convert %20 : (tensor<1x2x4x256x256xf32>) -> tensor<1x2x4x256x256xbf16>
    %25 = stablehlo.dot_general %arg2, %24, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4], precision = [DEFAULT, DEFAULT] : (tensor<2x256x4x16xbf16>, tensor<1x2x4x256x256xbf16>) -> tensor<2x4x16x1x256xbf16>
    %26 = stablehlo.transpose %25, dims = [3, 0, 4, 1, 2] : (tensor<2x4x16x1x256xbf16>) -> tensor<1x2x256x4x16xbf16>
    %27 = stablehlo.transpose %26, dims = [1, 2, 3, 0, 4] : (tensor<1x2x256x4x16xbf16>) -> tensor<2x256x4x1x16xbf16>
    %28 = stablehlo.reshape %27 : (tensor<2x256x4x1x16xbf16>) -> tensor<2x256x4x16xbf16>
    %29 = stablehlo.convert %28 : (tensor<2x256x4x16xbf16>) -> tensor<2x256x4x16xf32>
    %30 = stablehlo.multiply %29, %29 : tensor<2x256x4x16xf32>
    %cst_4 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %31 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x256x4x16xf32>
    %32 = stablehlo.multiply %31, %29 : tensor<2x256x4x16xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %33 = stablehlo.reduce(%30 init: %cst_5) applies stablehlo.add across dimensions = [0, 1, 2, 3] : (tensor<2x256x4x16xf32>, tensor<f32>) -> tensor<f32>
    %cst_6 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<2x256x4x16xf32>
    %35 = stablehlo.multiply %34, %32 : tensor<2x256x4x16xf32>
    %36 = stablehlo.convert %35 : (tensor<2x256x4x16xf32>) -> tensor<2x256x4x16xbf16>
    %37 = stablehlo.reshape %36 : (tensor<2x256x4x16xbf16>) -> tensor<2x256x4x1x16xbf16>
    %38 = stablehlo.transpose %37, dims = [3, 0, 1, 2, 4] : (tensor<2x256x4x1x16xbf16>) -> tensor<1x2x256x4x16xbf16>
    %39 = stablehlo.transpose %38, dims = [1, 3, 4, 0, 2] : (tensor<1x2x256x4x16xbf16>) -> tensor<2x4x16x1x256xbf16>
    %40 = stablehlo.dot_general %39, %arg2, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x16x1x256xbf16>, tensor<2x256x4x16xbf16>) -> tensor<2x4x1x256x256xbf16>
    %41 = stablehlo.transpose %40, dims = [2, 0, 1, 3, 4] : (tensor<2x4x1x256x256xbf16>) -> tensor<1x2x4x256x256xbf16>
    %42 = stablehlo.dot_general %39, %24, batching_dims = [0, 1] x [1, 2], contracting_dims = [3, 4] x [0, 3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x16x1x256xbf16>, tensor<1x2x4x256x256xbf16>) -> tensor<2x4x16x256xbf16>
    %43 = stablehlo.transpose %42, dims = [0, 3, 1, 2] : (tensor<2x4x16x256xbf16>) -> tensor<2x256x4x16xbf16>
    %44 = stablehlo.convert %41 : (tensor<1x2x4x256x256xbf16>) -> tensor<1x2x4x256x256xf32>
    %45 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x256x1xf32>) -> tensor<1x2x4x256x256xf32>
    %46 = stablehlo.multiply %44, %45 : tensor<1x2x4x256x256xf32>
    %47 = stablehlo.multiply %46, %16 : tensor<1x2x4x256x256xf32>
    %cst_7 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %48 = stablehlo.reduce(%47 init: %cst_7) applies stablehlo.add across dimensions = [4] : (tensor<1x2x4x256x256xf32>, tensor<f32>) -> tensor<1x2x4x256xf32>
    %49 = stablehlo.reshape %48 : (tensor<1x2x4x256xf32>) -> tensor<1x2x4x256x1xf32>
    %50 = stablehlo.negate %49 : tensor<1x2x4x256x1xf32>
    %51 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2, 3, 4] : (tensor<1x2x4x256x1xf32>) -> tensor<1x2x4x256x256xf32>
    %52 = stablehlo.divide %44, %51 : tensor<1x2x4x256x256xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %53 = stablehlo.reduce(%50 init: %cst_8) applies stablehlo.add across dimensions = [0, 4] : (tensor<1x2x4x256x1xf32>, tensor<f32>) -> tensor<2x4x256xf32>
    %54 = stablehlo.broadcast_in_dim %53, dims = [1, 2, 3] : (tensor<2x4x256xf32>) -> tensor<1x2x4x256xf32>
    %55 = stablehlo.broadcast_in_dim %54, dims = [0, 1, 2, 3] : (tensor<1x2x4x256xf32>) -> tensor<1x2x4x256x256xf32>
    %56 = stablehlo.add %52, %55 : tensor<1x2x4x256x256xf32>
    %57 = stablehlo.multiply %56, %16 : tensor<1x2x4x256x256xf32>
    %58 = stablehlo.transpose %57, dims = [1, 2, 3, 0, 4] : (tensor<1x2x4x256x256xf32>) -> tensor<2x4x256x1x256xf32>
    %cst_9 = stablehlo.constant dense<2.500000e-01> : tensor<f32>
    %59 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<2x4x256x1x256xf32>
    %60 = stablehlo.multiply %58, %59 : tensor<2x4x256x1x256xf32>
    %61 = stablehlo.dot_general %60, %0, batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [1, 3], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x4x256x1x256xf32>, tensor<2x256x4x1x16xbf16>) -> tensor<2x4x256x16xf32>
    %62 = stablehlo.transpose %61, dims = [0, 2, 1, 3] : (tensor<2x4x256x16xf32>) -> tensor<2x256x4x16xf32>
    %63 = stablehlo.convert %62 : (tensor<2x256x4x16xf32>) -> tensor<2x256x4x16xbf16>
    %64 = stablehlo.dot_general %60, %arg1, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x4x256x1x256xf32>, tensor<2x256x4x16xbf16>) -> tensor<2x4x256x1x16xf32>
    %65 = stablehlo.transpose %64, dims = [0, 2, 1, 3, 4] : (tensor<2x4x256x1x16xf32>) -> tensor<2x256x4x1x16xf32>
    %66 = stablehlo.convert %65 : (tensor<2x256x4x1x16xf32>) -> tensor<2x256x4x1x16xbf16>
    %67 = stablehlo.reshape %66 : (tensor<2x256x4x1x16xbf16>) -> tensor<2x256x4x16xbf16>
    return %33, %67, %63, %43 : tensor<f32>, tensor<2x256x4x16xbf16>, tensor<2x256x4x16xbf16>, tensor<2x256x4x16xbf16>
  }
}
